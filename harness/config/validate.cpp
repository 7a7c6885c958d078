#include "harness/config/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "harness/config/axes.h"
#include "harness/config/parse.h"
#include "harness/core/text_util.h"

namespace fathom::config {
namespace {

constexpr std::size_t kMaxNameBytes = 100;

class ProblemFinder {
 public:
  explicit ProblemFinder(const RunConfig& config) : config_(config) {}

  std::vector<ConfigProblem> find() {
    check_name();
    if (config_.models.empty()) add("", "model", "", "is missing; write a section [model]");
    for (const ModelSection& model : config_.models) check_model(model);
    check_train();
    check_sweep();
    check_report();
    return std::move(problems_);
  }

 private:
  /// \param section  as written between brackets; empty for the top level.
  void add(const std::string& section, const std::string& key, const std::string& value, const std::string& what) {
    const std::string full_key = section.empty() ? key : section + "." + key;
    const std::string place = section.empty() ? key : fmt::format("[{}] {}", section, key);
    problems_.push_back({full_key, value.empty() ? place + " " + what : fmt::format("{} = {} {}", place, value, what)});
  }

  /// \param what  names the entry itself: "'0x' is not a length: …".
  void add_entry(const std::string& section, const std::string& key, const std::string& what) {
    problems_.push_back({section + "." + key, fmt::format("[{}] {}: {}", section, key, what)});
  }

  void check_name();
  void check_model(const ModelSection& model);
  void check_scaling(const ModelSection& model, const std::string& section);
  void check_numbers(const std::string& section, const std::string& key, const std::vector<std::string>& values,
                     double low, double high);
  void check_distinct(const std::string& section, const std::string& key, const std::vector<std::string>& values);
  void check_words(const std::string& section, const std::string& key, const std::vector<std::string>& values,
                   const std::vector<std::string>& allowed);
  void check_train();
  void check_sweep();
  void check_controls();
  void check_report();

  const RunConfig& config_;
  std::vector<ConfigProblem> problems_;
};

void ProblemFinder::check_name() {
  const std::string& name = config_.name;
  if (name.empty()) {
    add("", "name", "", "is empty; the file's name gives none, so write name = ...");
    return;
  }
  const bool has_control =
      std::any_of(name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; });
  if (name.find_first_of("/\\") != std::string::npos || has_control || name.front() == '.' || name.front() == '-') {
    add("", "name", name, "cannot be a file's name; leave out '/' and '\\', and do not start with '.' or '-'");
  } else if (name.size() > kMaxNameBytes) {
    add("", "name", name, fmt::format("has {} bytes; at most {}", name.size(), kMaxNameBytes));
  }
}

void ProblemFinder::check_numbers(const std::string& section, const std::string& key,
                                  const std::vector<std::string>& values, double low, double high) {
  for (const std::string& value : values) {
    const auto number = parse_double(value);
    if (!number) {
      add(section, key, value, "is not a number");
    } else if (*number < low || *number > high) {
      add(section, key, value, fmt::format("is outside {}..{}", format_double(low), format_double(high)));
    }
  }
}

void ProblemFinder::check_distinct(const std::string& section, const std::string& key,
                                   const std::vector<std::string>& values) {
  std::set<std::string> seen;
  for (const std::string& value : values) {
    if (!seen.insert(value).second) add(section, key, join(values, ", "), fmt::format("has '{}' twice", value));
  }
}

void ProblemFinder::check_words(const std::string& section, const std::string& key,
                                const std::vector<std::string>& values, const std::vector<std::string>& allowed) {
  for (const std::string& value : values) {
    if (std::find(allowed.begin(), allowed.end(), value) != allowed.end()) continue;
    const auto near_word = nearest_name(value, allowed);
    add(section, key, value,
        fmt::format("is unknown{}; allowed: {}",
                    near_word ? fmt::format("; did you mean '{}'?", *near_word) : std::string(), join(allowed, ", ")));
  }
}

bool is_layer_pattern(const std::string& pattern) {
  if (pattern == "none") return true;
  if (starts_with(pattern, "every ")) return parse_int(trim(std::string_view(pattern).substr(6))).value_or(0) >= 1;
  const std::vector<std::string> parts = split_list(pattern);
  return !parts.empty() && std::all_of(parts.begin(), parts.end(),
                                       [](const std::string& part) { return parse_int(part).value_or(-1) >= 0; });
}

void ProblemFinder::check_model(const ModelSection& model) {
  const std::string section = model.name.empty() ? "model" : "model." + model.name;
  check_distinct(section, "position", model.position);
  check_numbers(section, "rope.base", model.rope_base, 1, 1e15);
  check_distinct(section, "rope.base", model.rope_base);
  check_numbers(section, "rope.partial", model.rope_partial, 0, 1);
  check_distinct(section, "rope.partial", model.rope_partial);
  if (!is_layer_pattern(model.nope_layers)) {
    add(section, "nope_layers", model.nope_layers,
        "is no layer pattern; write none, every N, or layers counted from 0 (1,3)");
  }
  check_scaling(model, section);
  check_distinct(section, "remap", model.remap);
  check_words(section, "temperature", model.temperature, {"none", "llama4", "ministral3", "log_n", "uniform"});
  check_distinct(section, "temperature", model.temperature);
}

void ProblemFinder::check_scaling(const ModelSection& model, const std::string& section) {
  check_distinct(section, "scaling", model.scaling);
  const auto has = [&](const char* word) {
    return std::find(model.scaling.begin(), model.scaling.end(), word) != model.scaling.end();
  };
  if (model.source == "train" && has("declared")) {
    add(section, "scaling", "declared", "needs a checkpoint; a model trained here declares no scaling, write none");
  }
  if (has("auto")) add(section, "scaling", "auto", "cannot stand in a list; leave the key out, or name the methods");
  std::vector<std::string> numbers = model.scaling_factor;
  numbers.erase(std::remove(numbers.begin(), numbers.end(), "auto"), numbers.end());
  check_numbers(section, "scaling.factor", numbers, 1, 1e6);
  check_distinct(section, "scaling.factor", model.scaling_factor);
}

void ProblemFinder::check_train() {
  const TrainSection& train = config_.train;
  check_distinct("train", "tasks", train.tasks);
  check_distinct("train", "seeds", train.seeds);
  for (const std::string& seed : train.seeds) {
    if (parse_int(seed).value_or(-1) < 0) add("train", "seeds", seed, "is not an integer >= 0");
  }
  if (train.d_model && train.heads && *train.d_model % *train.heads != 0) {
    add("train", "d_model", std::to_string(*train.d_model),
        fmt::format("is not a multiple of heads = {}", *train.heads));
  }
}

void ProblemFinder::check_sweep() {
  const SweepSection& sweep = config_.sweep;
  check_distinct("sweep", "tasks", sweep.tasks);
  for (const std::string& entry : sweep.lengths) {
    if (entry == "auto") {
      add("sweep", "lengths", entry, "cannot stand in a list; leave the key out, or name the lengths");
    } else if (const auto problem = length_entry_problem(entry)) {
      add_entry("sweep", "lengths", *problem);
    }
  }
  check_controls();
  if (depths_are_spread(sweep.depths)) return;
  for (const std::string& entry : sweep.depths) {
    if (const auto problem = depth_entry_problem(entry)) add_entry("sweep", "depths", *problem);
  }
}

void ProblemFinder::check_controls() {
  const std::vector<std::string>& controls = config_.sweep.controls;
  check_distinct("sweep", "controls", controls);
  check_words("sweep", "controls", controls,
              {"off", "on", "no_needle", "needle_only", "wrong_key", "closed_book", "oracle"});
  for (const std::string& control : controls) {
    if (controls.size() > 1 && (control == "on" || control == "off")) {
      add("sweep", "controls", control, "cannot stand in a list; name the controls, or write on or off alone");
    }
  }
}

void ProblemFinder::check_report() {
  const ReportSection& report = config_.report;
  check_distinct("report", "effective", report.effective);
  if (report.base_lengths == std::vector<std::string>{"auto"}) return;
  if (report.base_lengths.size() != 2) {
    add("report", "base_lengths", join(report.base_lengths, ", "), "must be two lengths, or auto");
    return;
  }
  for (const std::string& entry : report.base_lengths) {
    if (const auto problem = length_entry_problem(entry)) add_entry("report", "base_lengths", *problem);
  }
}

}  // namespace

std::vector<ConfigProblem> find_problems(const RunConfig& config) {
  return ProblemFinder(config).find();
}

std::vector<std::string> validate(const RunConfig& config) {
  std::vector<std::string> texts;
  for (const ConfigProblem& problem : find_problems(config)) texts.push_back(problem.text);
  if (config.sweep.tasks.empty()) {
    texts.emplace_back("[sweep] tasks is missing; name at least one task ('fathom list tasks' shows them)");
  }
  return texts;
}

}  // namespace fathom::config
