"""Uses a server through the client that openapi-python-client generates.

    client.py BASE KEY VIDEO_FILE
"""

import sys
import time
from pathlib import Path

from reprise_client.api.jobs import get_job
from reprise_client.api.library import add_video, delete_video, get_video, list_videos
from reprise_client.api.search import search_videos
from reprise_client.client import AuthenticatedClient
from reprise_client.models.added_video import AddedVideo
from reprise_client.models.exclude import Exclude
from reprise_client.models.job import Job
from reprise_client.models.job_state import JobState
from reprise_client.models.next_page import NextPage
from reprise_client.models.problem import Problem
from reprise_client.models.range_query import RangeQuery
from reprise_client.models.search import Search
from reprise_client.models.search_answer import SearchAnswer
from reprise_client.models.search_upload import SearchUpload
from reprise_client.models.text_query import TextQuery
from reprise_client.models.time_range import TimeRange
from reprise_client.models.upload_query import UploadQuery
from reprise_client.models.video_page import VideoPage
from reprise_client.models.video_upload import VideoUpload
from reprise_client.types import File


def uploaded(client: AuthenticatedClient, file: Path) -> AddedVideo:
    with file.open("rb") as content:
        body = VideoUpload(file=File(payload=content, file_name=file.name), title="From Python")
        answer = add_video.sync(client=client, body=body)
    assert isinstance(answer, AddedVideo), answer
    return answer


def wait(client: AuthenticatedClient, added: AddedVideo) -> None:
    assert isinstance(added.job, Job), added
    while True:
        job = get_job.sync(added.job.id, client=client)
        assert isinstance(job, Job), job
        if job.state not in (JobState.QUEUED, JobState.RUNNING):
            assert job.state == JobState.SUCCEEDED, job
            return
        time.sleep(0.1)


def search(client: AuthenticatedClient, body: Search | SearchUpload | NextPage) -> SearchAnswer:
    answer = search_videos.sync(client=client, body=body)
    assert isinstance(answer, SearchAnswer), answer
    return answer


def main(base: str, key: str, file: Path) -> None:
    client = AuthenticatedClient(base_url=base, token=key)
    added = uploaded(client, file)
    wait(client, added)
    video = added.video.id

    first = search(client, Search(query=TextQuery(text="a red floor"), limit=1))
    assert len(first.results) == 1, first
    assert isinstance(first.next_cursor, str), first
    second = search(client, NextPage(cursor=first.next_cursor))
    assert second.results[0].clip_id != first.results[0].clip_id, second

    clip = TimeRange(video_id=video, start=0.0, end=1.0)
    changed = search(client, Search(query=RangeQuery(clip=clip, modification="in blue")))
    assert changed.query_info.kind.value == "composed", changed
    with file.open("rb") as content:
        query = Search(query=UploadQuery(upload=True), exclude=Exclude(self_=False))
        same = search(client, SearchUpload(query=query, file=File(payload=content, file_name=file.name)))
    assert same.results, same

    page = list_videos.sync(client=client, limit=1)
    assert isinstance(page, VideoPage) and len(page.items) == 1, page
    deleted = delete_video.sync_detailed(video, client=client)
    assert deleted.status_code == 204, deleted
    gone = get_video.sync(video, client=client)
    assert isinstance(gone, Problem) and gone.status == 404, gone
    print("done")


main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
