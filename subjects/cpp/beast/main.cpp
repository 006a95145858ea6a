// The ping and hello endpoints on Boost.Beast, with nlohmann/json: one coroutine for each connection.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/version.hpp>
#include <nlohmann/json.hpp>

namespace beast = boost::beast;
namespace http = beast::http;
namespace net = boost::asio;
using tcp = net::ip::tcp;
using json = nlohmann::json;

using Request = http::request<http::string_body>;
using Response = http::response<http::string_body>;

namespace {

constexpr int backlog = 65535;
constexpr auto idle_timeout = std::chrono::seconds(75);
constexpr auto accept_pause = std::chrono::milliseconds(50);
constexpr auto drain_time = std::chrono::seconds(1);

struct Options {
    std::string host = "127.0.0.1";
    std::uint16_t port = 0;
    int threads = 1;
};

std::atomic<bool> stopping = false;

Response respond(const Request& request, http::status status, beast::string_view type, std::string body) {
    Response response{status, request.version()};
    response.set(http::field::server, BOOST_BEAST_VERSION_STRING);
    response.set(http::field::content_type, type);
    response.keep_alive(request.keep_alive() && !stopping);
    response.body() = std::move(body);
    response.prepare_payload();
    return response;
}

Response refuse(const Request& request, http::status status, std::string why) {
    return respond(request, status, "text/plain", std::move(why));
}

// The sequence in a body, if there is a valid one.
std::optional<std::uint64_t> parse_ping(const std::string& body) {
    const json message = json::parse(body, nullptr, /*allow_exceptions=*/false);
    if (!message.is_object()) {
        return std::nullopt;
    }
    const auto sequence = message.find("sequence");
    if (sequence == message.end() || !sequence->is_number_unsigned()) {
        return std::nullopt;
    }
    return sequence->get<std::uint64_t>();
}

Response ping(const Request& request) {
    if (request.method() != http::verb::post) {
        return refuse(request, http::status::method_not_allowed, "use POST");
    }
    const auto sequence = parse_ping(request.body());
    if (!sequence) {
        return refuse(request, http::status::bad_request, "expected an object with a sequence");
    }
    return respond(request, http::status::ok, "application/json", json{{"sequence", *sequence}}.dump());
}

Response hello(const Request& request) {
    if (request.method() == http::verb::get) {
        return respond(request, http::status::ok, "text/plain", "Hello, World!");
    }
    if (request.method() == http::verb::head) {
        Response response = respond(request, http::status::ok, "text/plain", "Hello, World!");
        response.body().clear();  // content-length stays that of GET
        return response;
    }
    return refuse(request, http::status::method_not_allowed, "use GET");
}

Response handle(const Request& request) {
    if (request.target() == "/ping") {
        return ping(request);
    }
    if (request.target() == "/hello") {
        return hello(request);
    }
    return refuse(request, http::status::not_found, "not found");
}

// Serves one connection until the client is done with it, is idle for too long, or the server stops.
net::awaitable<void> serve(tcp::socket socket) {
    beast::tcp_stream stream(std::move(socket));
    beast::flat_buffer buffer;
    beast::error_code error;
    stream.socket().set_option(tcp::no_delay(true), error);
    for (;;) {
        stream.expires_after(idle_timeout);
        Request request;
        co_await http::async_read(stream, buffer, request, net::redirect_error(net::use_awaitable, error));
        if (error) {
            break;  // closed, reset, timed out, or not HTTP
        }
        const Response response = handle(request);
        co_await http::async_write(stream, response, net::redirect_error(net::use_awaitable, error));
        if (error || response.need_eof()) {
            break;
        }
    }
    stream.socket().shutdown(tcp::socket::shutdown_send, error);
}

net::awaitable<void> listen(tcp::acceptor& acceptor, net::io_context& context) {
    net::steady_timer pause(acceptor.get_executor());
    while (!stopping) {
        beast::error_code error;
        // A connection's timers and reads share a strand: more than one thread may run them.
        tcp::socket socket = co_await acceptor.async_accept(net::make_strand(context), net::redirect_error(net::use_awaitable, error));
        if (error == net::error::operation_aborted) {
            break;
        }
        if (error) {
            // Out of descriptors, most likely: wait for some connections to end.
            std::cerr << "accept: " << error.message() << std::endl;
            pause.expires_after(accept_pause);
            co_await pause.async_wait(net::use_awaitable);
            continue;
        }
        auto executor = socket.get_executor();
        net::co_spawn(executor, serve(std::move(socket)), net::detached);
    }
}

void run(const Options& options) {
    net::io_context context(options.threads);
    const tcp::endpoint endpoint(net::ip::make_address(options.host), options.port);
    // The signal closes the acceptor that the coroutine waits on: they share a strand.
    tcp::acceptor acceptor(net::make_strand(context));
    acceptor.open(endpoint.protocol());
    acceptor.set_option(net::socket_base::reuse_address(true));
    acceptor.bind(endpoint);
    acceptor.listen(backlog);

    net::signal_set signals(acceptor.get_executor(), SIGTERM, SIGINT);
    net::steady_timer drain(context);
    signals.async_wait([&](beast::error_code, int) {
        stopping = true;
        acceptor.close();
        // What is being answered ends within this time; idle connections are cut after it.
        drain.expires_after(drain_time);
        drain.async_wait([&](beast::error_code) { context.stop(); });
    });
    net::co_spawn(acceptor.get_executor(), listen(acceptor, context), net::detached);

    std::vector<std::jthread> others;
    for (int i = 1; i < options.threads; ++i) {
        others.emplace_back([&context] { context.run(); });
    }
    context.run();
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
            options.threads = std::max(1, std::stoi(argv[i + 1]));
        } else {
            throw std::invalid_argument("unknown option " + std::string(name));
        }
    }
    return options;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        run(parse(argc, argv));
    } catch (const std::exception& error) {
        std::cerr << "beast: " << error.what() << std::endl;
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
