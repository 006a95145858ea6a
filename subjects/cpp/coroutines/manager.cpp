#include "manager.hpp"

#include <cstdio>
#include <cstdlib>

namespace manner {

namespace {

// What the hardened build checks for every event, beside what its compiler's flags check.
#ifdef HARDENED
void check(bool holds, const char* what) {
    if (!holds) [[unlikely]] {
        std::fputs(what, stderr);
        std::abort();
    }
}
#else
void check(bool, const char*) {}
#endif

}  // namespace

void Manager::dispatch(std::unique_ptr<Event> event) {
    check(event->type() != 0, "an event without a type\n");
    if (!intercepted(*event)) {
        handle_by_type(std::move(event));
    }
}

bool Manager::intercepted(const Event& event) {
    constexpr std::uint64_t every_type = 0;
    bool kept_back = false;
    for (const std::uint64_t type : {every_type, event.type()}) {
        if (const auto found = interceptors_.find(type); found != interceptors_.end()) {
            // A copy: an interceptor may add or remove interceptors.
            const auto interceptors = found->second;
            for (const Interceptor& interceptor : interceptors) {
                kept_back |= !interceptor(event);
            }
        }
    }
    return kept_back;
}

void Manager::handle_by_type(std::unique_ptr<Event> event) {
    switch (event->type()) {
        case Insert::TYPE:
            return on_insert(static_cast<Insert&>(*event));
        case Request::TYPE:
            return on_request(static_cast<const Request&>(*event));
        case Online::TYPE:
            return on_online(static_cast<const Online&>(*event));
        case Offline::TYPE:
            return on_offline(static_cast<const Offline&>(*event));
        case Start::TYPE:
            return on_start(static_cast<const Start&>(*event));
        case Stop::TYPE:
            return on_stop(static_cast<const Stop&>(*event));
        case Ended::TYPE:
            return on_ended(static_cast<const Ended&>(*event));
        case Quit::TYPE:
            return on_quit();
        case Run::TYPE:
            return on_run(std::move(event));
        default:
            return on_other(std::move(event));
    }
}

void Manager::on_run(std::unique_ptr<Event> event) {
    // What a service asked for is not run when it has gone.
    if (event->origin == 0 || find(event->origin) != nullptr) {
        Task task = static_cast<const Run&>(*event).function();
        keep(std::move(task), nullptr, std::move(event));
    }
}

void Manager::on_other(std::unique_ptr<Event> event) {
    ++dispatched_;
    const auto found = handlers_.find(event->type());
    if (found != handlers_.end()) {
        Task task = found->second(*event);
        keep(std::move(task), nullptr, std::move(event));
        return;
    }
    const auto listener = listeners_.find(event->type());
    if (listener != listeners_.end()) {
        listener->second(*event);
    }
}

// Runs a coroutine. If it ends at once, `then` follows; if it waits for something, it is kept until it ends.
void Manager::keep(Task task, std::function<void()> then, std::unique_ptr<Event> event) {
    task.resume();
    if (task.done()) {
        if (then) {
            then();
        }
        return;
    }
    const std::uint64_t id = next_task_++;
    task.keep(*this, id);
    kept_.emplace(id, Kept{std::move(event), std::move(task), std::move(then)});
}

void Manager::on_ended(const Ended& event) {
    auto node = kept_.extract(event.task);
    if (!node.empty() && node.mapped().then) {
        node.mapped().then();
    }
}

Lifecycle* Manager::find(ServiceId id) noexcept {
    const auto found = services_.find(id);
    return found == services_.end() ? nullptr : found->second.get();
}

// The one that a service is offered to, if it is not for all.
std::optional<ServiceId> Manager::only_one(const Lifecycle& service) {
    const auto found = service.properties.find(only_for);
    return found == service.properties.end() ? std::nullopt : std::optional(std::any_cast<ServiceId>(found->second));
}

void Manager::on_insert(Insert& event) {
    Lifecycle& service = *services_.emplace(event.origin, std::move(event.service)).first->second;
    if (service.dependencies().all().empty()) {
        return start(service);
    }
    for (auto& [id, other] : services_) {
        if (other->state != State::active || other->interfaces.empty()) {
            continue;
        }
        if (only_one(*other).value_or(service.id) == service.id && service.online(*other)) {
            start(service);
        }
    }
}

void Manager::on_request(const Request& event) {
    const auto found = trackers_.find(event.interface);
    Lifecycle* const requester = find(event.origin);
    if (found == trackers_.end() || requester == nullptr) {
        return;
    }
    for (const Tracker& make : found->second) {
        make(*requester);
    }
}

void Manager::track(std::uint64_t interface, Tracker make) {
    for (auto& [id, service] : services_) {
        if (service->dependencies().find(interface) != nullptr) {
            make(*service);
        }
    }
    trackers_[interface].push_back(std::move(make));
}

void Manager::start(Lifecycle& service) {
    service.state = State::starting;
    keep(service.start(), [this, &service] {
        service.state = State::injecting;
        queue_.push<Online>(service.id, priority::dependency);
    });
}

// Offers the service to every other: this is what makes the start of many services quadratic.
void Manager::on_online(const Online& event) {
    Lifecycle* const service = find(event.origin);
    if (service == nullptr || service->state != State::injecting) {
        return;
    }
    service->state = State::active;
    if (!service->interfaces.empty()) {
        const auto only = only_one(*service);
        for (auto& [id, other] : services_) {
            if (other.get() != service && only.value_or(other->id) == other->id && other->online(*service)) {
                start(*other);
            }
        }
    }
    bool must_stop = quitting_;
    for (const ServiceId id : service->providers) {
        // It may have begun to go while this one was starting.
        const Lifecycle* const provider = find(id);
        must_stop |= provider != nullptr && provider->state == State::uninjecting;
    }
    if (must_stop) {
        push_stop(service->id, quitting_);
    }
}

void Manager::on_start(const Start& event) {
    Lifecycle* const service = find(event.service);
    if (service != nullptr && service->state == State::installed && service->dependencies().all_satisfied()) {
        start(*service);
    }
}

void Manager::push_stop(ServiceId service, bool remove) {
    queue_.push<Stop>(service, priority::dependency, service, remove);
}

// First time: takes it from those that use it. When none is left: stops it.
void Manager::on_stop(const Stop& event) {
    Lifecycle* const service = find(event.service);
    if (service == nullptr) {
        return;
    }
    service->remove_after_stop |= event.remove;
    if (service->state == State::active) {
        service->state = State::uninjecting;
        queue_.push<Offline>(service->id, priority::dependency - 1);
    } else if (service->state == State::uninjecting && service->dependents.empty()) {
        service->state = State::stopping;
        keep(service->stop(), [this, service] { stopped(*service); });
    } else if (service->state == State::installed && service->remove_after_stop) {
        stopped(*service);
    }
}

void Manager::on_offline(const Offline& event) {
    Lifecycle* const service = find(event.origin);
    check(service != nullptr, "a service that goes is not known\n");
    const std::vector<ServiceId> dependents(service->dependents.begin(), service->dependents.end());
    for (const ServiceId id : dependents) {
        Lifecycle* const dependent = find(id);
        check(dependent != nullptr, "a dependent is not known\n");
        if (dependent->offline(*service)) {
            push_stop(id, false);
        } else if (dependent->state == State::active || dependent->state == State::installed) {
            dependent->forget(*service);
        }
    }
    if (service->dependents.empty()) {
        push_stop(service->id, false);
    }
}

void Manager::stopped(Lifecycle& service) {
    service.state = State::installed;
    const std::vector<ServiceId> providers(service.providers.begin(), service.providers.end());
    for (const ServiceId id : providers) {
        Lifecycle* const provider = find(id);
        check(provider != nullptr, "a provider is not known\n");
        // One that stays is kept, so that this service can start again as soon as the others are back.
        if (provider->state == State::uninjecting || service.remove_after_stop) {
            service.forget(*provider);
            if (provider->state == State::uninjecting && provider->dependents.empty()) {
                push_stop(id, false);
            }
        }
    }
    if (service.remove_after_stop) {
        services_.erase(service.id);
        if (quitting_ && services_.empty()) {
            queue_.quit();
        }
    }
}

void Manager::on_quit() {
    quitting_ = true;
    for (const auto& [id, service] : services_) {
        push_stop(id, true);
    }
    if (services_.empty()) {
        queue_.quit();
    }
}

}  // namespace manner
