#pragma once
// Options are declared once, in a `visit` member of a plain struct. The same declaration parses values, checks ranges,
// prints help and writes the canonical form that is hashed and stored.
//
//   struct NiahOptions {
//     std::int64_t value_digits = 7;
//     void visit(OptionVisitor& v) { v.integer("value_digits", value_digits, {1, 18}, "Digits in the number to be
//     found."); }
//   };

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fathom {

struct IntegerRange {
  std::int64_t low;
  std::int64_t high;
};

struct RealRange {
  double low;
  double high;
};

class OptionVisitor {
 public:
  virtual ~OptionVisitor() = default;
  virtual void integer(std::string_view name, std::int64_t& value, IntegerRange range, std::string_view help) = 0;
  virtual void real(std::string_view name, double& value, RealRange range, std::string_view help) = 0;
  virtual void text(std::string_view name, std::string& value, std::string_view help) = 0;
  /// Written `on` or `off`.
  virtual void flag(std::string_view name, bool& value, std::string_view help) = 0;
  virtual void choice(std::string_view name, std::string& value, const std::vector<std::string>& allowed,
                      std::string_view help) = 0;
  /// A number that may be left out; "auto" is the same as leaving it out.
  virtual void optional_integer(std::string_view name, std::optional<std::int64_t>& value, IntegerRange range,
                                std::string_view help) = 0;
  virtual void optional_real(std::string_view name, std::optional<double>& value, RealRange range,
                             std::string_view help) = 0;
  /// Comma-separated.
  virtual void text_list(std::string_view name, std::vector<std::string>& value, std::string_view help) = 0;
};

/// Unread `key = value` pairs of one section, handed to whoever declares them. Keys that nobody claims are an error.
class OptionSource {
 public:
  OptionSource() = default;
  /// \param where   names the section in messages, for example "[task.niah_single_2]".
  OptionSource(std::string where, std::map<std::string, std::string> values)
      : where_(std::move(where)), values_(std::move(values)) {}

  const std::string& where() const { return where_; }
  const std::map<std::string, std::string>& values() const { return values_; }

 private:
  std::string where_;
  std::map<std::string, std::string> values_;
};

/// One declared option as text: for `list options`, help and the canonical dump.
struct OptionDescription {
  std::string name;
  std::string type;           ///< "integer", "number", "text", "on/off", "list", or the allowed words
  std::string default_value;  ///< the value the struct held when it was described
  std::string allowed;        ///< range or words; empty if anything goes
  std::string help;
};

/// Reads `source` into `options`. \throws ConfigError listing every unknown key (with the nearest declared one), every
/// value that does not parse and every value out of range.
template <typename Options>
void bind_options(Options& options, const OptionSource& source);

/// Canonical `name=value` pairs in declaration order, joined by ';'.
template <typename Options>
std::string canonical_options(const Options& options);

template <typename Options>
std::vector<OptionDescription> describe_options(const Options& options);

/// Parses one value at a time; what bind_options uses.
class OptionReader : public OptionVisitor {
 public:
  explicit OptionReader(const OptionSource& source) : source_(source) {}
  void integer(std::string_view name, std::int64_t& value, IntegerRange range, std::string_view help) override;
  void real(std::string_view name, double& value, RealRange range, std::string_view help) override;
  void text(std::string_view name, std::string& value, std::string_view help) override;
  void flag(std::string_view name, bool& value, std::string_view help) override;
  void choice(std::string_view name, std::string& value, const std::vector<std::string>& allowed,
              std::string_view help) override;
  void optional_integer(std::string_view name, std::optional<std::int64_t>& value, IntegerRange range,
                        std::string_view help) override;
  void optional_real(std::string_view name, std::optional<double>& value, RealRange range,
                     std::string_view help) override;
  void text_list(std::string_view name, std::vector<std::string>& value, std::string_view help) override;

  /// All problems so far, unknown keys included. Call after visiting.
  std::vector<std::string> problems() const;
  /// \throws ConfigError joining problems(), if there are any.
  void throw_problems() const;

 private:
  const std::string* claim(std::string_view name);
  void complain(std::string_view name, const std::string& value, const std::string& what);

  const OptionSource& source_;
  std::set<std::string> declared_;
  std::vector<std::string> problems_;
};

class OptionDescriber : public OptionVisitor {
 public:
  void integer(std::string_view name, std::int64_t& value, IntegerRange range, std::string_view help) override;
  void real(std::string_view name, double& value, RealRange range, std::string_view help) override;
  void text(std::string_view name, std::string& value, std::string_view help) override;
  void flag(std::string_view name, bool& value, std::string_view help) override;
  void choice(std::string_view name, std::string& value, const std::vector<std::string>& allowed,
              std::string_view help) override;
  void optional_integer(std::string_view name, std::optional<std::int64_t>& value, IntegerRange range,
                        std::string_view help) override;
  void optional_real(std::string_view name, std::optional<double>& value, RealRange range,
                     std::string_view help) override;
  void text_list(std::string_view name, std::vector<std::string>& value, std::string_view help) override;

  const std::vector<OptionDescription>& descriptions() const { return descriptions_; }
  std::string canonical() const;

 private:
  std::vector<OptionDescription> descriptions_;
};

template <typename Options>
void bind_options(Options& options, const OptionSource& source) {
  OptionReader reader(source);
  options.visit(reader);
  reader.throw_problems();
}

template <typename Options>
std::string canonical_options(const Options& options) {
  Options copy = options;
  OptionDescriber describer;
  copy.visit(describer);
  return describer.canonical();
}

template <typename Options>
std::vector<OptionDescription> describe_options(const Options& options) {
  Options copy = options;
  OptionDescriber describer;
  copy.visit(describer);
  return describer.descriptions();
}

}  // namespace fathom
