"""The first two calls of a client to Milvus: `doorkeeper.py PORT VERSION`. Only `root:right` may enter."""

import base64
import sys
from concurrent.futures import ThreadPoolExecutor

import grpc
from pymilvus.grpc_gen import common_pb2, milvus_pb2, milvus_pb2_grpc

ALLOWED = base64.b64encode(b"root:right").decode()


class Doorkeeper(milvus_pb2_grpc.MilvusServiceServicer):
    def __init__(self, version):
        self.version = version

    def Connect(self, request, context):
        self.check(context)
        about = {"build_tags": self.version}
        return milvus_pb2.ConnectResponse(status=common_pb2.Status(), server_info=about, identifier=1)

    def GetVersion(self, request, context):
        self.check(context)
        return milvus_pb2.GetVersionResponse(status=common_pb2.Status(), version=self.version)

    def check(self, context):
        if dict(context.invocation_metadata()).get("authorization") != ALLOWED:
            text = "auth check failure, please check username and password are correct"
            context.abort(grpc.StatusCode.UNAUTHENTICATED, text)


port, version = sys.argv[1:]
server = grpc.server(ThreadPoolExecutor(2))
milvus_pb2_grpc.add_MilvusServiceServicer_to_server(Doorkeeper(version), server)
server.add_insecure_port(f"127.0.0.1:{port}")
server.start()
server.wait_for_termination()
