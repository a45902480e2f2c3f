"""The content type of the parts of resumable uploads: bytes. And forms that can be sent."""

import schemathesis

schemathesis.serializer.alias("application/offset+octet-stream", "application/octet-stream")


@schemathesis.hook
def filter_case(context, case):
    """Parts of a form are named in headers, which hold no control characters."""
    is_form = case.media_type == "multipart/form-data" and isinstance(case.body, dict)
    return not is_form or all(str(name).isprintable() for name in case.body)
