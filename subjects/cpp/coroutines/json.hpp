// JSON for structs whose fields are named once: `static constexpr auto fields = std::tuple{field("id", &Message::id)}`.
// What is written and read for each struct is put together when this is compiled; what is read is checked.
#pragma once

#include <charconv>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

namespace json {

template <class Struct, class Value>
struct Field {
    std::string_view name;
    Value Struct::* member;
};

template <class Struct, class Value>
constexpr Field<Struct, Value> field(std::string_view name, Value Struct::* member) {
    return {name, member};
}

namespace detail {

constexpr bool is_plain(char c) {
    return static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\';
}

inline void write(std::string& out, std::uint64_t value) {
    char digits[20];
    out.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

inline void write_escaped(std::string& out, char c) {
    constexpr std::string_view hex = "0123456789abcdef";
    if (c == '"' || c == '\\') {
        out.append({'\\', c});
    } else {
        out.append("\\u00").append({hex[static_cast<unsigned char>(c) >> 4], hex[c & 15]});
    }
}

inline void write(std::string& out, std::string_view value) {
    out.push_back('"');
    while (!value.empty()) {
        std::size_t plain = 0;
        while (plain < value.size() && is_plain(value[plain])) {
            ++plain;
        }
        out.append(value.substr(0, plain));
        if (plain < value.size()) {
            write_escaped(out, value[plain++]);
        }
        value.remove_prefix(plain);
    }
    out.push_back('"');
}

class Reader {
public:
    explicit Reader(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) {}

    void space() {
        while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) {
            ++at_;
        }
    }
    bool is(char c) {
        space();
        if (at_ == end_ || *at_ != c) {
            return false;
        }
        ++at_;
        return true;
    }
    bool at_end() {
        space();
        return at_ == end_;
    }

    // Whether the field that follows is this one; if not, nothing is taken.
    bool is_key(std::string_view name) {
        const auto left = static_cast<std::size_t>(end_ - at_);
        if (left < name.size() + 2 || at_[0] != '"' || std::memcmp(at_ + 1, name.data(), name.size()) != 0 ||
            at_[name.size() + 1] != '"') {
            return false;
        }
        at_ += name.size() + 2;
        return true;
    }

    bool read(std::uint64_t& value) {
        space();
        const bool leading_zero = end_ - at_ > 1 && at_[0] == '0' && at_[1] >= '0' && at_[1] <= '9';
        const auto [next, error] = std::from_chars(at_, end_, value);
        at_ = next;
        // A fraction or an exponent is then where a comma or the end should be.
        return error == std::errc() && !leading_zero;
    }

    bool read(std::string& value) {
        if (!is('"')) {
            return false;
        }
        value.clear();
        for (;;) {
            const char* const begin = at_;
            while (at_ != end_ && is_plain(*at_)) {
                ++at_;
            }
            value.append(begin, at_);
            if (at_ == end_ || (*at_ != '"' && *at_ != '\\')) {
                return false;
            }
            if (*at_++ == '"') {
                return true;
            }
            if (!read_escaped(value)) {
                return false;
            }
        }
    }

private:
    bool read_escaped(std::string& value) {
        constexpr std::string_view names = "\"\\/bfnrt";
        constexpr std::string_view meanings = "\"\\/\b\f\n\r\t";
        if (at_ == end_) {
            return false;
        }
        const char name = *at_++;
        if (name == 'u') {
            return read_unicode(value);
        }
        const std::size_t which = names.find(name);
        if (which == std::string_view::npos) {
            return false;
        }
        value.push_back(meanings[which]);
        return true;
    }

    std::optional<std::uint32_t> hex4() {
        std::uint32_t unit = 0;
        if (end_ - at_ < 4 || std::from_chars(at_, at_ + 4, unit, 16).ptr != at_ + 4) {
            return std::nullopt;
        }
        at_ += 4;
        return unit;
    }

    bool read_unicode(std::string& value) {
        const auto first = hex4();
        if (!first || (*first >= 0xdc00 && *first < 0xe000)) {
            return false;
        }
        std::uint32_t point = *first;
        if (point >= 0xd800 && point < 0xdc00) {
            if (end_ - at_ < 2 || at_[0] != '\\' || at_[1] != 'u') {
                return false;
            }
            at_ += 2;
            const auto second = hex4();
            if (!second || *second < 0xdc00 || *second >= 0xe000) {
                return false;
            }
            point = 0x10000 + ((point - 0xd800) << 10) + (*second - 0xdc00);
        }
        append_utf8(value, point);
        return true;
    }

    static void append_utf8(std::string& value, std::uint32_t point) {
        const auto tail = [&](int shift) { value.push_back(static_cast<char>(0x80 | ((point >> shift) & 0x3f))); };
        if (point < 0x80) {
            value.push_back(static_cast<char>(point));
        } else if (point < 0x800) {
            value.push_back(static_cast<char>(0xc0 | (point >> 6)));
            tail(0);
        } else if (point < 0x10000) {
            value.push_back(static_cast<char>(0xe0 | (point >> 12)));
            tail(6);
            tail(0);
        } else {
            value.push_back(static_cast<char>(0xf0 | (point >> 18)));
            tail(12);
            tail(6);
            tail(0);
        }
    }

    const char* at_;
    const char* end_;
};

// Reads the value of the field that follows into the one of `Struct` that has its name, and marks it as seen.
template <class Struct, std::size_t... I>
bool read_field(Reader& reader, Struct& value, std::uint32_t& seen, std::index_sequence<I...>) {
    const auto one = [&]<std::size_t J>(std::integral_constant<std::size_t, J>) {
        constexpr auto the_field = std::get<J>(Struct::fields);
        if (!reader.is_key(the_field.name)) {
            return false;
        }
        const bool fresh = (seen & (1U << J)) == 0;
        seen |= 1U << J;
        return fresh && reader.is(':') && (reader.space(), reader.read(value.*the_field.member));
    };
    return (one(std::integral_constant<std::size_t, I>{}) || ...);
}

}  // namespace detail

template <class Struct>
std::string write(const Struct& value) {
    std::string out;
    out.reserve(64);
    char before = '{';
    std::apply(
        [&](const auto&... field) {
            ((out.push_back(std::exchange(before, ',')), out.push_back('"'), out.append(field.name),
              out.append("\":"), detail::write(out, value.*field.member)),
             ...);
        },
        Struct::fields);
    out.push_back('}');
    return out;
}

// Nothing if the text is not an object with exactly these fields, each once, in any order.
template <class Struct>
std::optional<Struct> read(std::string_view text) {
    constexpr std::size_t count = std::tuple_size_v<decltype(Struct::fields)>;
    constexpr std::uint32_t all = (1U << count) - 1;
    detail::Reader reader(text);
    Struct value;
    std::uint32_t seen = 0;
    char before = '{';
    while (seen != all) {
        if (!reader.is(std::exchange(before, ','))) {
            return std::nullopt;
        }
        reader.space();
        if (!detail::read_field(reader, value, seen, std::make_index_sequence<count>{})) {
            return std::nullopt;
        }
    }
    if (!reader.is('}') || !reader.at_end()) {
        return std::nullopt;
    }
    return value;
}

}  // namespace json
