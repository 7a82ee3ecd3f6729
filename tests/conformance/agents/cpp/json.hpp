// JSON as text: a value is a part of the source text, so that numbers are never

#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

class Json {
  public:
    explicit Json(std::string_view text) : raw_(trimmed(text)) {}

    // The text of the value.
    std::string raw() const { return std::string(raw_); }

    // The member of an object, the last one of that name.
    std::optional<Json> find(std::string_view name) const {
        std::optional<Json> found;
        const auto pieces = parts();
        for (std::size_t i = 0; i + 1 < pieces.size(); i += 2)
            if (Json(pieces[i]).text() == name) found = Json(pieces[i + 1]);
        return found;
    }

    Json at(std::string_view name) const {
        if (auto found = find(name)) return *found;
        throw std::runtime_error("no " + std::string(name) + " in " + raw());
    }

    // The items of an array.
    std::vector<Json> items() const {
        std::vector<Json> all;
        for (auto piece : parts()) all.emplace_back(piece);
        return all;
    }

    long number() const { return std::stol(raw()); }

    // The characters of a string, as UTF-8.
    std::string text() const {
        std::string decoded;
        for (std::size_t i = 1; i + 1 < raw_.size(); i++) {
            if (raw_[i] != '\\') {
                decoded += raw_[i];
            } else if (raw_[++i] == 'u') {
                append_utf8(decoded, code_point(i));
            } else {
                static constexpr std::string_view letters = "bfnrt", meant = "\b\f\n\r\t";
                const auto at = letters.find(raw_[i]);
                decoded += at == letters.npos ? raw_[i] : meant[at];
            }
        }
        return decoded;
    }

  private:
    static constexpr std::string_view blank = " \t\r\n";
    std::string_view raw_;

    static std::string_view trimmed(std::string_view text) {
        const auto begin = text.find_first_not_of(blank);
        if (begin == text.npos) throw std::runtime_error("no JSON");
        return text.substr(begin, text.find_last_not_of(blank) - begin + 1);
    }

    // The parts between the commas and colons of an object or array.
    std::vector<std::string_view> parts() const {
        std::vector<std::string_view> pieces;
        std::size_t begin = 1;
        int depth = 0;
        for (std::size_t i = 0; i < raw_.size(); i++) {
            const char c = raw_[i];
            if (c == '"') {
                while (raw_[++i] != '"')
                    if (raw_[i] == '\\') i++;
            } else if (c == '{' || c == '[') {
                depth++;
            } else if ((depth == 1 && (c == ',' || c == ':')) || ((c == '}' || c == ']') && --depth == 0)) {
                const auto piece = raw_.substr(begin, i - begin);
                if (piece.find_first_not_of(blank) != piece.npos) pieces.push_back(piece);
                begin = i + 1;
            }
        }
        return pieces;
    }

    // Reads the four digits after the `u` at i, and the other half of a pair; leaves i at the last digit.
    std::uint32_t code_point(std::size_t& i) const {
        const auto digits = [&](std::size_t from) { return std::stoul(std::string(raw_.substr(from, 4)), nullptr, 16); };
        const auto high = digits(i + 1);
        i += 4;
        if (high < 0xD800 || high > 0xDBFF) return high;
        const auto low = digits(i + 3);
        i += 6;
        return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
    }

    static void append_utf8(std::string& to, std::uint32_t point) {
        const auto tail = [&](int shift) { to += static_cast<char>(0x80 | ((point >> shift) & 0x3F)); };
        if (point < 0x80) {
            to += static_cast<char>(point);
        } else if (point < 0x800) {
            to += static_cast<char>(0xC0 | (point >> 6)), tail(0);
        } else if (point < 0x10000) {
            to += static_cast<char>(0xE0 | (point >> 12)), tail(6), tail(0);
        } else {
            to += static_cast<char>(0xF0 | (point >> 18)), tail(12), tail(6), tail(0);
        }
    }
};

// Returns a text as a JSON string.
inline std::string quoted(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            out += '\\', out += c;
        } else if (static_cast<unsigned char>(c) < 0x20) {
            static constexpr char digits[] = "0123456789abcdef";
            out += "\\u00", out += digits[c >> 4], out += digits[c & 15];
        } else {
            out += c;
        }
    }
    return out + '"';
}

// Returns JSON texts as one list.
inline std::string listed(const std::vector<std::string>& items) {
    std::string out;
    for (const auto& item : items) out += (out.empty() ? "" : ",") + item;
    return "[" + out + "]";
}
