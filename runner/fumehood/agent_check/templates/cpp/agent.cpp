// Calls every tool once, without arguments, and submits the results. Put your logic here.

#include <grpcpp/grpcpp.h>

#include "fumehood/v1/tool.grpc.pb.h"

using namespace fumehood::v1;

// Returns at most `bytes` bytes of a text, and cuts no UTF-8 character.
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
    for (bool more = true; more;) {  // Repeat while the user sends more turns.
        grpc::ClientContext task_context, submit_context;
        GetTaskResponse task;
        if (!seat->GetTask(&task_context, {}, &task).ok()) return 1;
        SubmitRequest answer;
        for (const auto& tool : task.tools()) {
            grpc::ClientContext call_context;
            CallToolRequest call;
            CallToolResponse reply;
            call.set_tool_name(tool.name());
            if (!seat->CallTool(&call_context, call, &reply).ok()) return 1;
            const auto& result = reply.has_failure() ? reply.failure().message() : reply.value_json();
            *answer.mutable_answer() += beginning(tool.name() + ": " + result, 200) + "\n";
            if (reply.ended()) return 0;
        }
        SubmitResponse submitted;
        if (!seat->Submit(&submit_context, answer, &submitted).ok()) return 1;
        more = submitted.has_next();
    }
}
