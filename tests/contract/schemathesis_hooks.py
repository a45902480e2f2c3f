"""The content type of the parts of resumable uploads: bytes."""

import schemathesis

schemathesis.serializer.alias("application/offset+octet-stream", "application/octet-stream")
