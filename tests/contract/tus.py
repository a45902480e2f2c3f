"""Uploads a file with tuspy, in pieces with checksums. A cut connection ends a call; the next one goes on."""

import sys

from requests import RequestException
from tusclient.client import TusClient
from tusclient.exceptions import TusCommunicationError, TusUploadFailed

base, path = sys.argv[1:]
cut = (TusUploadFailed, TusCommunicationError, RequestException)
client = TusClient(f"{base}/v1/uploads")


def again(call):
    for _ in range(2000):
        try:
            return call()
        except cut as error:
            last = error
    raise last


def begin():
    uploader = client.uploader(path, chunk_size=65536, metadata={"filename": "film.mp4", "title": "By tuspy"})
    uploader.set_url(uploader.create_url())
    return uploader.url


def go_on():
    uploader = client.uploader(path, chunk_size=65536, url=url, upload_checksum=True)
    uploader.upload()
    return uploader.offset


url = again(begin)
sent = again(go_on)
print("sent", sent, url)
