// Executes the script in its task, with nothing but code generated from tool.proto, and prints its
// observations. The README of the protocol cases describes the steps.

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <thread>

#include "fumehood/v1/tool.grpc.pb.h"
#include "json.hpp"

using namespace fumehood::v1;
using namespace std::chrono_literals;

namespace {

constexpr auto patience = 5s;
constexpr auto under_way = 5ms;  // After which a call that was sent is on its way.

void require(const grpc::Status& status) {
    if (!status.ok()) throw std::runtime_error(std::to_string(status.error_code()) + ": " + status.error_message());
}

// A connection to the seat: single calls, and an open stream for most of them.
class Seat {
  public:
    Seat() {
        const char* path = std::getenv("FUMEHOOD_SOCKET");
        grpc::ChannelArguments arguments;
        arguments.SetMaxReceiveMessageSize(-1);
        arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
        stub_ = ToolService::NewStub(grpc::CreateCustomChannel(std::string("unix:") + (path ? path : "/fumehood/grpc.sock"),
                                                               grpc::InsecureChannelCredentials(), arguments));
        stream_ = stub_->Interact(&open_);
    }

    ~Seat() { open_.TryCancel(), stream_->Finish(); }

    GetTaskResponse task() {
        grpc::ClientContext context;
        context.set_wait_for_ready(true);
        context.set_deadline(std::chrono::system_clock::now() + patience);
        GetTaskResponse response;
        require(stub_->GetTask(&context, {}, &response));
        return response;
    }

    CallToolResponse call(const CallToolRequest& request) {
        InteractRequest message;
        *message.mutable_call() = request;
        return exchange(message).call();
    }

    SubmitResponse submit(const SubmitRequest& request) {
        InteractRequest message;
        *message.mutable_submit() = request;
        return exchange(message).submit();
    }

    // Calls on its own, for a late answer on the stream would be taken for the next one's; nothing when it is late.
    std::optional<CallToolResponse> call_within(const CallToolRequest& request, std::chrono::milliseconds deadline) {
        grpc::ClientContext context;
        context.set_deadline(std::chrono::system_clock::now() + deadline);
        CallToolResponse response;
        const auto status = stub_->CallTool(&context, request, &response);
        if (status.error_code() == grpc::DEADLINE_EXCEEDED) return std::nullopt;
        require(status);
        return response;
    }

    // Sends a call over a separate stream and cancels it.
    void call_and_cancel(const CallToolRequest& request) {
        grpc::ClientContext context;
        auto stream = stub_->Interact(&context);
        InteractRequest message;
        *message.mutable_call() = request;
        stream->Write(message);
        std::this_thread::sleep_for(under_way);
        context.TryCancel();
        stream->Finish();
    }

  private:
    std::unique_ptr<ToolService::Stub> stub_;
    grpc::ClientContext open_;
    std::unique_ptr<grpc::ClientReaderWriter<InteractRequest, InteractResponse>> stream_;

    InteractResponse exchange(const InteractRequest& request) {
        InteractResponse response;
        if (!stream_->Write(request) || !stream_->Read(&response)) require(stream_->Finish());
        return response;
    }
};

std::string observation_of(const Refusal& refusal) {
    auto name = RefusalKind_Name(refusal.kind()).substr(std::string_view("REFUSAL_KIND_").size());
    for (char& letter : name) letter = static_cast<char>(std::tolower(letter));
    if (refusal.limit() == 0) return "{\"refusal\":" + quoted(name) + "}";
    return "{\"refusal\":" + quoted(name) + ",\"limit\":" + std::to_string(refusal.limit()) +
           ",\"actual\":" + std::to_string(refusal.actual()) + "}";
}

std::string observation_of(const CallToolResponse& response, const std::optional<Json>& measure) {
    const std::string end = response.ended() ? ",\"ended\":true}" : "}";
    if (response.has_refusal()) return observation_of(response.refusal());
    if (response.has_failure()) {
        const auto& failure = response.failure();
        return "{\"failure\":{\"code\":" + quoted(failure.code()) + ",\"message\":" + quoted(failure.message()) +
               ",\"details\":" + (failure.details_json().empty() ? "{}" : failure.details_json()) + "}" + end;
    }
    if (measure) return "{\"bytes\":" + std::to_string(Json(response.value_json()).at(measure->text()).text().size()) + end;
    return "{\"value\":" + response.value_json() + end;
}

std::string remaining(const google::protobuf::Map<std::string, std::int64_t>& units) {
    std::string text;
    for (const auto& [kind, amount] : units) {
        if (kind == "wall_ms") continue;
        text += (text.empty() ? "" : ",") + quoted(kind) + ":" + std::to_string(amount);
    }
    return "{" + text + "}";
}

// Does one step after the other and tells what it saw.
class Interpreter {
  public:
    std::vector<std::string> work() {
        std::vector<std::string> all;
        while (!ended_) {
            const std::string script = task_.instruction();
            std::vector<std::string> observations;
            for (const auto& step : Json(script).at("steps").items()) observations.push_back(carry_out(step));
            all.insert(all.end(), observations.begin(), observations.end());
            if (ended_) break;
            SubmitRequest answer;
            answer.set_answer(listed(observations));
            submit(answer);
        }
        return all;
    }

  private:
    std::unique_ptr<Seat> seat_ = std::make_unique<Seat>();
    GetTaskResponse task_ = seat_->task();
    bool ended_ = false;

    std::string carry_out(const Json& step) {
        const auto what = step.at("do").text();
        if (what == "task") return observe_task();
        if (what == "call") return call(step);
        if (what == "raw_call") return observed(seat_->call(request(step, step.at("text").text())));
        if (what == "submit" || what == "give_up") return end(step, what == "submit");
        if (what == "cancel_stream") {
            seat_->call_and_cancel(request(step, step.at("arguments").raw()));
            return "{\"cancelled\":true}";
        }
        if (what == "reconnect") {
            seat_.reset();
            seat_ = std::make_unique<Seat>();
            task_ = seat_->task();
            return "{\"reconnected\":true}";
        }
        throw std::runtime_error("no such step: " + step.raw());
    }

    std::string observe_task() {
        std::vector<std::string> names;
        for (const auto& tool : task_.tools()) names.push_back(quoted(tool.name()));
        return "{\"turn\":" + std::to_string(task_.turn()) + ",\"tools\":" + listed(names) +
               ",\"remaining\":" + remaining(seat_->task().remaining()) + "}";
    }

    static CallToolRequest request(const Json& step, const std::string& arguments) {
        CallToolRequest call;
        call.set_tool_name(step.at("tool").text());
        call.set_arguments_json(arguments);
        if (auto id = step.find("id")) call.set_call_id(id->text());
        return call;
    }

    std::string call(const Json& step) {
        const auto asked = request(step, step.at("arguments").raw());
        const auto deadline = step.find("deadline_ms");
        if (!deadline) return observed(seat_->call(asked), step.find("measure"));
        const auto response = seat_->call_within(asked, std::chrono::milliseconds(deadline->number()));
        return response ? observed(*response, step.find("measure")) : "{\"deadline\":true}";
    }

    std::string observed(const CallToolResponse& response, const std::optional<Json>& measure = {}) {
        ended_ |= response.ended() || response.refusal().kind() == REFUSAL_KIND_ENDED;
        return observation_of(response, measure);
    }

    std::string end(const Json& step, bool submits) {
        SubmitRequest request;
        if (submits)
            request.set_answer(step.at("answer").text());
        else
            request.set_give_up_reason(step.at("reason").text());
        return submit(request);
    }

    std::string submit(const SubmitRequest& request) {
        const auto response = seat_->submit(request);
        if (response.has_refusal()) return observation_of(response.refusal());
        if (response.has_next())
            task_ = response.next();
        else
            ended_ = true;
        return response.accepted() ? "{\"accepted\":true}" : "{\"accepted\":false}";
    }
};

}  // namespace

int main() {
    try {
        std::cout << listed(Interpreter().work()) << std::endl;
    } catch (const std::exception& error) {
        std::cerr << error.what() << std::endl;
        return 1;
    }
}
