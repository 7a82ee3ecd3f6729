"""The only room that speaks protobuf: conversions, the two services' servers, the orchestrator's client."""
