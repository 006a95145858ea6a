// Services: what they offer, what they require, and what the manager keeps of each.
#pragma once

#include <any>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "coroutine.hpp"
#include "queue.hpp"

namespace manner {

using Properties = std::unordered_map<std::string, std::any>;

// The property by which a service is offered to one other only.
inline const std::string only_for = "OnlyFor";

enum class State { installed, starting, injecting, active, uninjecting, stopping };

class Service {
public:
    virtual ~Service() = default;
    virtual Task start() = 0;
    virtual Task stop() = 0;
};

struct Dependency {
    std::uint64_t interface;
    std::function<void(void*, ServiceId)> add;
    std::function<void(void*, ServiceId)> remove;
    std::uint64_t satisfied = 0;
};

// Where the constructor of a service says what it requires.
class Dependencies {
public:
    template <class Interface, class Self>
    void require(Self& self) {
        all_.push_back({number_of<Interface>(),
                        [&self](void* it, ServiceId id) { self.add(*static_cast<Interface*>(it), id); },
                        [&self](void* it, ServiceId id) { self.remove(*static_cast<Interface*>(it), id); }});
    }
    template <class Interface>
    void require(std::function<void(void*, ServiceId)> add, std::function<void(void*, ServiceId)> remove) {
        all_.push_back({number_of<Interface>(), std::move(add), std::move(remove)});
    }
    Dependency* find(std::uint64_t interface) noexcept {
        for (Dependency& dependency : all_) {
            if (dependency.interface == interface) {
                return &dependency;
            }
        }
        return nullptr;
    }
    bool all_satisfied() const noexcept {
        for (const Dependency& dependency : all_) {
            if (dependency.satisfied == 0) {
                return false;
            }
        }
        return true;
    }
    const std::vector<Dependency>& all() const noexcept { return all_; }

private:
    std::vector<Dependency> all_;
};

// One service as the manager sees it.
class Lifecycle {
public:
    struct Offer {
        std::uint64_t interface;
        void* object;
    };

    Lifecycle(ServiceId id, Properties properties) : id(id), properties(std::move(properties)) {}
    Lifecycle(const Lifecycle&) = delete;
    virtual ~Lifecycle() = default;

    virtual Task start() = 0;
    virtual Task stop() = 0;
    virtual Dependencies& dependencies() noexcept = 0;
    virtual std::vector<Offer> offers() = 0;

    // Another service came online. True if this one has now all that it requires and is to be started.
    virtual bool online(Lifecycle& other) {
        bool fills = false;
        for (const std::uint64_t interface : other.interfaces) {
            Dependency* const dependency = dependencies().find(interface);
            if (dependency != nullptr && providers.insert(other.id).second) {
                fills |= dependency->satisfied++ == 0;
                dependency->add(other.object(interface), other.id);
                other.dependents.insert(id);
            }
        }
        return fills && state == State::installed && dependencies().all_satisfied();
    }

    // Another service is about to go. True if this one cannot be without it.
    virtual bool offline(const Lifecycle& other) {
        bool must_stop = false;
        for (const std::uint64_t interface : other.interfaces) {
            Dependency* const dependency = dependencies().find(interface);
            must_stop |= dependency != nullptr && dependency->satisfied == 1;
        }
        return must_stop && state == State::active;
    }

    // Lets go of a service that goes.
    void forget(Lifecycle& other) {
        if (providers.erase(other.id) == 0) {
            return;
        }
        for (const std::uint64_t interface : other.interfaces) {
            if (Dependency* const dependency = dependencies().find(interface)) {
                dependency->satisfied--;
                dependency->remove(other.object(interface), other.id);
            }
        }
        other.dependents.erase(id);
    }

    void* object(std::uint64_t interface) {
        for (const Offer& offer : offers()) {
            if (offer.interface == interface) {
                return offer.object;
            }
        }
        throw std::logic_error("a service was asked for an interface that it does not offer");
    }

    const ServiceId id;
    Properties properties;
    std::vector<std::uint64_t> interfaces;
    State state = State::installed;
    bool remove_after_stop = false;
    std::unordered_set<ServiceId> providers;
    std::unordered_set<ServiceId> dependents;
};

// A service whose constructor takes (Dependencies&, Properties&, ServiceId) and registers what it requires.
template <class T, class... Interfaces>
class Registered final : public Lifecycle {
public:
    Registered(ServiceId id, Properties properties_)
        : Lifecycle(id, std::move(properties_)), service_(dependencies_, properties, id) {
        interfaces = {number_of<Interfaces>()...};
    }
    Task start() override { co_await service_.start(); }
    Task stop() override { co_await service_.stop(); }
    Dependencies& dependencies() noexcept override { return dependencies_; }
    std::vector<Offer> offers() override {
        return {Offer{number_of<Interfaces>(), static_cast<void*>(static_cast<Interfaces*>(&service_))}...};
    }

private:
    Dependencies dependencies_;
    T service_;
};

// A service whose constructor takes (Properties&, ServiceId, Required&...): it is made when all of them are there,
// and unmade when it has stopped.
template <class T, class... Required>
class Constructed final : public Lifecycle {
public:
    Constructed(ServiceId id, Properties properties) : Lifecycle(id, std::move(properties)) {
        (dependencies_.require<Required>(
             [this](void* it, ServiceId) { std::get<Required*>(arguments_) = static_cast<Required*>(it); },
             [this](void*, ServiceId) { std::get<Required*>(arguments_) = nullptr; }),
         ...);
    }
    Task start() override {
        service_.emplace(properties, id, *std::get<Required*>(arguments_)...);
        co_await service_->start();
    }
    Task stop() override {
        co_await service_->stop();
        service_.reset();
    }
    Dependencies& dependencies() noexcept override { return dependencies_; }
    std::vector<Offer> offers() override { return {}; }

private:
    Dependencies dependencies_;
    std::tuple<Required*...> arguments_{};
    std::optional<T> service_;
};

}  // namespace manner
