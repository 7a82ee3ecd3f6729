// Calls every tool once, without arguments, and answers with what they said. Begin here.

#include <grpcpp/grpcpp.h>

#include "fumehood/v1/tool.grpc.pb.h"

using namespace fumehood::v1;

// Returns at most so many bytes of a text, and no half of a letter.
std::string beginning(const std::string& text, std::size_t bytes) {
    if (text.size() <= bytes) return text;
    while ((text[bytes] & 0xC0) == 0x80) bytes--;
    return text.substr(0, bytes);
}

int main() {
    grpc::ChannelArguments unbounded;
    unbounded.SetMaxReceiveMessageSize(-1);
    const auto seat = ToolService::NewStub(
        grpc::CreateCustomChannel("unix:/fumehood/grpc.sock", grpc::InsecureChannelCredentials(), unbounded));
    for (bool more = true; more;) {  // As long as the user has more to say.
        grpc::ClientContext asking, answering;
        GetTaskResponse task;
        if (!seat->GetTask(&asking, {}, &task).ok()) return 1;
        SubmitRequest answer;
        for (const auto& tool : task.tools()) {
            grpc::ClientContext calling;
            CallToolRequest call;
            CallToolResponse reply;
            call.set_tool_name(tool.name());
            if (!seat->CallTool(&calling, call, &reply).ok()) return 1;
            const auto& said = reply.has_failure() ? reply.failure().message() : reply.value_json();
            *answer.mutable_answer() += beginning(tool.name() + ": " + said, 200) + "\n";
            if (reply.ended()) return 0;
        }
        SubmitResponse submitted;
        if (!seat->Submit(&answering, answer, &submitted).ok()) return 1;
        more = submitted.has_next();
    }
}
