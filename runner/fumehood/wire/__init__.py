"""Protobuf conversion, and the gRPC and HTTP servers and clients."""
