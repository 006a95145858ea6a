// The ping and hello endpoints on Drogon, with the JsonCpp that it brings.

#include <cstdint>
#include <cstdlib>
#include <exception>
#include <functional>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <drogon/drogon.h>

using drogon::HttpRequestPtr;
using drogon::HttpResponse;
using drogon::HttpResponsePtr;
using Answer = std::function<void(const HttpResponsePtr&)>;

namespace {

constexpr size_t idle_timeout_s = 75;
constexpr size_t connections_max = 100'000;

struct Options {
    std::string host = "127.0.0.1";
    std::uint16_t port = 0;
    size_t threads = 1;
};

HttpResponsePtr bad_request() {
    auto response = HttpResponse::newHttpResponse(drogon::k400BadRequest, drogon::CT_TEXT_PLAIN);
    response->setBody("expected an object with a sequence");
    return response;
}

// Drogon's own getJsonObject() takes what follows the JSON for nothing; this is strict.
bool parse_json(std::string_view text, Json::Value& value) {
    static const Json::CharReaderBuilder builder = [] {
        Json::CharReaderBuilder strict;
        Json::CharReaderBuilder::strictMode(&strict.settings_);
        return strict;
    }();
    const std::unique_ptr<Json::CharReader> reader(builder.newCharReader());
    return reader->parse(text.data(), text.data() + text.size(), &value, nullptr);
}

void ping(const HttpRequestPtr& request, Answer&& answer) {
    Json::Value message;
    if (!parse_json(request->body(), message) || !message.isObject()) {
        answer(bad_request());
        return;
    }
    const Json::Value& sequence = message["sequence"];
    if (!sequence.isUInt64()) {
        answer(bad_request());
        return;
    }
    Json::Value reply;
    reply["sequence"] = sequence.asUInt64();
    answer(HttpResponse::newHttpJsonResponse(std::move(reply)));
}

void hello(const HttpRequestPtr&, Answer&& answer) {
    auto response = HttpResponse::newHttpResponse(drogon::k200OK, drogon::CT_TEXT_PLAIN);
    response->setBody("Hello, World!");
    answer(response);
}

Options parse(int argc, char** argv) {
    Options options;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string_view name = argv[i];
        if (name == "--host") {
            options.host = argv[i + 1];
        } else if (name == "--port") {
            options.port = static_cast<std::uint16_t>(std::stoul(argv[i + 1]));
        } else if (name == "--threads") {
            options.threads = std::stoul(argv[i + 1]);
        } else {
            throw std::invalid_argument("unknown option " + std::string(name));
        }
    }
    return options;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        const Options options = parse(argc, argv);
        // The backlog is SOMAXCONN, 4096: Drogon offers no setting for it.
        drogon::app()
            .setLogLevel(trantor::Logger::kWarn)
            .addListener(options.host, options.port)
            .setThreadNum(options.threads)
            .setMaxConnectionNum(connections_max)
            .setIdleConnectionTimeout(idle_timeout_s)
            .disableSession()
            .registerHandler("/ping", &ping, {drogon::Post})
            .registerHandler("/hello", &hello, {drogon::Get, drogon::Head})
            .run();
    } catch (const std::exception& error) {
        std::cerr << "drogon: " << error.what() << std::endl;
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
