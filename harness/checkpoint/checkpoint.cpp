#include "harness/checkpoint/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>

#include "harness/checkpoint/architecture.h"
#include "harness/checkpoint/fathom_config.h"
#include "harness/checkpoint/gguf_config.h"
#include "harness/checkpoint/gguf_family.h"
#include "harness/checkpoint/gguf_file.h"
#include "harness/checkpoint/gguf_positions.h"
#include "harness/checkpoint/hf_family.h"
#include "harness/checkpoint/hf_positions.h"
#include "harness/checkpoint/json_reader.h"
#include "harness/checkpoint/mapped_file.h"
#include "harness/checkpoint/safetensors_shards.h"
#include "harness/checkpoint/stored_tensor.h"
#include "harness/checkpoint/tokenizer_source.h"
#include "harness/core/error.h"
#include "harness/core/hash.h"
#include "harness/core/text_util.h"

namespace fathom::checkpoint {
namespace {

constexpr int kConfigMaxDepth = 16;
constexpr std::size_t kHashedBytes = std::size_t{1} << 26;

using StoredTensors = std::map<std::string, StoredTensor, std::less<>>;

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

/// Tensors under canonical names, with the reading of rows; the parts that differ by container are below.
class MappedCheckpoint : public Checkpoint {
 public:
  const DecoderConfig& config() const override { return config_; }
  const std::vector<TensorInfo>& tensors() const override { return infos_; }

  void read_float32(std::string_view name, std::int64_t row_begin, std::int64_t row_end, float* out) const override {
    const auto found = stored_.find(name);
    if (found == stored_.end()) throw ModelError(fmt::format("model: {} has no tensor '{}'", where_, name));
    const StoredTensor& tensor = found->second;
    const std::int64_t n_rows = tensor.shape.empty() ? 1 : tensor.shape.front();
    if (row_begin < 0 || row_begin > row_end || row_end > n_rows) {
      throw ModelError(fmt::format("model: {}: rows {} to {} of tensor '{}' do not exist; it has {}", where_, row_begin,
                                   row_end, name, n_rows));
    }
    read_rows(tensor, row_begin, row_end, out);
    // Loading would otherwise hold the whole file beside the weights made from it.
    release_pages(tensor);
  }

  std::string fingerprint() const override {
    std::call_once(fingerprint_once_, [this] {
      StreamingHash hash;
      const std::vector<std::string_view> mapped = mapped_parts();
      for (const std::string_view part : fingerprint_parts()) {
        hash.update(fmt::format("{}:", part.size()));
        const bool is_mapped = std::any_of(mapped.begin(), mapped.end(),
                                           [&](std::string_view other) { return other.data() == part.data(); });
        // In pieces, so that a file larger than the weights made from it is never in memory as a whole.
        for (std::size_t at = 0; at < part.size(); at += kHashedBytes) {
          const std::string_view piece = part.substr(at, kHashedBytes);
          hash.update(piece);
          if (is_mapped) release_mapped_pages(piece);
        }
      }
      fingerprint_ = to_hex(hash.digest());
    });
    return fingerprint_;
  }

 protected:
  MappedCheckpoint(std::string where, DecoderConfig config) : where_(std::move(where)), config_(std::move(config)) {}

  /// The bytes that shape the model's results.
  virtual std::vector<std::string_view> fingerprint_parts() const = 0;
  /// Those of them that lie in mapped files.
  virtual std::vector<std::string_view> mapped_parts() const = 0;

  /// Gives every tensor its canonical name. \throws ModelError  for a missing, surplus or wrongly shaped one.
  void adopt(const StoredTensors& found, std::vector<TensorRule> rules, const ArchitectureEntry& family) {
    if (family.names_are_canonical) {
      for (const auto& [name, tensor] : found) add(whole_tensor(name, tensor.shape), tensor);
      return;
    }
    const auto rename = renaming(found, rules);
    std::set<std::string, std::less<>> known;
    for (TensorRule& rule : rules) {
      rule.stored = rename(rule.stored);
      for (TensorRule& part : rule.parts) part.stored = rename(part.stored);
      if (rule.parts.empty()) {
        known.insert(rule.stored);
        add(rule, tensor_of(rule, found));
        continue;
      }
      StoredTensor whole = tensor_of(rule.parts.front(), found);
      for (const TensorRule& part : rule.parts) {
        known.insert(part.stored);
        whole.parts.push_back(tensor_of(part, found));
        whole.parts.back().rule = part;
      }
      add(rule, whole);
    }
    for (const auto& [name, tensor] : found) {
      if (known.count(name) != 0 || is_ignored_tensor(name) || is_other_part(rules, name)) continue;
      throw ModelError(fmt::format("model: {}: tensor '{}' is unknown to architecture {}", where_, name, family.name));
    }
  }

  /// Goes by the file where the configuration ties embedding and head, as transformers does: a head with other values
  /// is the head, and one that stands alone is both.
  /// \param rules  of the same model with a head.
  void settle_tied_head(StoredTensors& found, const std::vector<TensorRule>& rules) {
    const auto name_of = [&rules](std::string_view canonical) {
      const auto rule =
          std::find_if(rules.begin(), rules.end(), [&](const TensorRule& each) { return each.canonical == canonical; });
      return rule == rules.end() ? std::string() : rule->stored;
    };
    const auto rename = renaming(found, rules);
    const auto head = found.find(rename(name_of("head.weight")));
    if (head == found.end()) return;
    const auto [embedding, was_missing] = found.emplace(rename(name_of("token_embedding")), head->second);
    if (!was_missing && !have_same_values(embedding->second, head->second)) config_.tied_head = false;
  }

  const std::string& where() const { return where_; }
  void set_default_name(const std::string& name) {
    if (config_.name.empty()) config_.name = name;
  }

 private:
  /// What the file calls a tensor, as the first one shows: files of a bare model leave out the model's name inside the
  /// class ("transformer.", "model."), and models of several parts call their decoder language_model or text_model.
  static std::function<std::string(const std::string&)> renaming(const StoredTensors& found,
                                                                 const std::vector<TensorRule>& rules) {
    const auto same = [](const std::string& name) { return name; };
    if (rules.empty()) return same;
    const std::string& first = rules.front().stored;
    const std::string prefix = first.substr(0, first.find('.') + 1);
    const auto without = [prefix](const std::string& name) {
      return starts_with(name, prefix) ? name.substr(prefix.size()) : name;
    };
    const auto in_front = [](const std::string& name) { return "language_model." + name; };
    const auto inside = [prefix](const std::string& part) {
      return [prefix, part](const std::string& name) {
        return starts_with(name, prefix) ? prefix + part + name.substr(prefix.size()) : name;
      };
    };
    for (const std::function<std::string(const std::string&)>& rename :
         {std::function<std::string(const std::string&)>(same),
          {without},
          {in_front},
          {inside("language_model.")},
          {inside("text_model.")}}) {
      if (found.count(rename(first)) != 0) return rename;
    }
    return same;
  }

  const StoredTensor& tensor_of(const TensorRule& rule, const StoredTensors& found) const {
    const auto entry = found.find(rule.stored);
    if (entry == found.end())
      throw ModelError(fmt::format("model: {} has no tensor '{}' ({})", where_, rule.stored, rule.canonical));
    if (entry->second.shape != rule.stored_shape) {
      throw ModelError(fmt::format("model: {}: tensor '{}' has shape {}, the configuration asks for {}", where_,
                                   rule.stored, shape_text(entry->second.shape), shape_text(rule.stored_shape)));
    }
    return entry->second;
  }

  /// True for what does not belong to the decoder of a model of several parts.
  static bool is_other_part(const std::vector<TensorRule>& rules, const std::string& name) {
    const std::string& first = rules.front().stored;
    for (const char* part : {"language_model.", "text_model."}) {
      const std::size_t at = first.find(part);
      if (at != std::string::npos) return !starts_with(name, first.substr(0, at) + part);
    }
    return false;
  }

  static TensorRule whole_tensor(const std::string& name, const std::vector<std::int64_t>& shape) {
    TensorRule rule;
    rule.canonical = rule.stored = name;
    rule.shape = rule.stored_shape = shape;
    rule.view.row_stride = 1;
    for (std::size_t i = 1; i < shape.size(); ++i) rule.view.row_stride *= shape[i];
    return rule;
  }

  void add(const TensorRule& rule, const StoredTensor& tensor) {
    if (tensor.type->dequantize == nullptr) {
      throw ModelError(fmt::format("model: {}: weights '{}' have type {}, which is not supported; supported: {}",
                                   where_, rule.canonical, tensor.type->name, join(supported_storage_types(), ", ")));
    }
    infos_.push_back({rule.canonical, rule.shape, std::string(tensor.type->name)});
    stored_.emplace(rule.canonical, StoredTensor{rule.shape, tensor.type, tensor.data, rule, tensor.parts});
  }

  std::string where_;
  DecoderConfig config_;
  std::vector<TensorInfo> infos_;
  StoredTensors stored_;
  mutable std::once_flag fingerprint_once_;
  mutable std::string fingerprint_;
};

constexpr const char* kInspectOnly = "cannot be run by this build; `fathom inspect` shows its positions";
constexpr const char* kUnknown = "is not supported";

std::string cannot_run(const std::string& name, const char* why, const std::vector<std::string>& runnable) {
  return fmt::format("= '{}' {}; decoders of this build: {}", name, why, join(runnable, ", "));
}

const ArchitectureEntry& gguf_decoder(const GgufFile& file) {
  const auto name = file.text("general.architecture");
  if (!name) file.fail("general.architecture", "is missing");
  std::vector<std::string> runnable;
  for (const ArchitectureEntry& entry : architectures().entries()) {
    if (entry.config_from_gguf == nullptr) continue;
    if (entry.gguf_name == *name) return entry;
    runnable.emplace_back(entry.gguf_name);
  }
  file.fail("general.architecture",
            cannot_run(std::string(*name), find_gguf_family(*name) ? kInspectOnly : kUnknown, runnable));
}

/// The object that describes the decoder, with what a model of several parts says of it outside.
JsonObject decoder_part(const JsonObject& config) {
  const HfFamily* family = find_hf_family(config.required_text("model_type"));
  if (family == nullptr || family->text_model_type.empty()) return config;
  std::string model_type;
  const JsonObject part = hf_decoder_object(config, model_type);
  const auto tied = config.flag("tie_word_embeddings");
  const std::string outside = fmt::format(R"({{"model_type": "{}"{}}})", model_type,
                                          tied ? fmt::format(R"(, "tie_word_embeddings": {})", *tied) : "");
  return part.with_defaults(JsonObject::parse(outside, config.where(), kConfigMaxDepth));
}

const ArchitectureEntry& json_decoder(const JsonObject& file) {
  const JsonObject config = decoder_part(file);
  const std::string name = config.required_text("model_type");
  std::vector<std::string> runnable;
  for (const ArchitectureEntry& entry : architectures().entries()) {
    if (entry.config_from_json == nullptr) continue;
    if (entry.name == name) return entry;
    runnable.emplace_back(entry.name);
  }
  config.fail("model_type", cannot_run(name, find_hf_family(name) ? kInspectOnly : kUnknown, runnable));
}

std::string file_stem(const std::string& path) {
  return std::filesystem::path(path).stem().string();
}

/// "/models/tiny/" and "/models/tiny" both give "tiny".
std::string folder_name(const std::string& folder) {
  std::error_code error;
  const auto full = std::filesystem::weakly_canonical(folder, error);
  return (error ? std::filesystem::path(folder) : full).filename().string();
}

class GgufCheckpoint : public MappedCheckpoint {
 public:
  explicit GgufCheckpoint(const std::string& path) : GgufCheckpoint(GgufFile::open(path)) {}

  bool has_tokenizer() const override { return file_.metadata().count("tokenizer.ggml.model") != 0; }
  std::unique_ptr<text::Tokenizer> make_tokenizer() const override { return make_gguf_tokenizer(file_); }
  std::optional<text::ChatTemplate> chat_template() const override { return gguf_chat_template(file_); }

 protected:
  std::vector<std::string_view> fingerprint_parts() const override { return file_.parts(); }
  std::vector<std::string_view> mapped_parts() const override { return file_.parts(); }

 private:
  explicit GgufCheckpoint(GgufFile file) : MappedCheckpoint(file.where(), read_decoder(file)), file_(std::move(file)) {
    set_default_name(file_stem(where()));
    StoredTensors stored;
    for (const GgufTensor& tensor : file_.tensors())
      stored[tensor.name] = {tensor.shape, tensor.type, tensor.data, {}, {}};
    const ArchitectureEntry& family = gguf_decoder(file_);
    NameMap names = family.gguf_names(config());
    // Converters of different years fuse these or leave them apart.
    if (file_.find_tensor("blk.0.attn_qkv.weight") != nullptr) names = with_fused_qkv(std::move(names));
    std::vector<TensorRule> rules = map_tensors(config(), names);
    if (file_.find_tensor("blk.0.attn_k_b.weight") != nullptr) split_latent_values(config(), rules);
    adopt(stored, std::move(rules), family);
  }

  static DecoderConfig read_decoder(const GgufFile& file) {
    const ArchitectureEntry& family = gguf_decoder(file);
    refuse_gguf_keys(file, std::string(family.gguf_name), family.gguf_keys);
    return family.config_from_gguf(file);
  }

  GgufFile file_;
};

/// A folder as Hugging Face lays it out: config.json, model.safetensors or its shards, tokenizer.json.
class FolderCheckpoint : public MappedCheckpoint {
 public:
  explicit FolderCheckpoint(const std::string& folder)
      : FolderCheckpoint(folder, JsonObject::parse(read_text_file(folder + "/config.json"), folder + "/config.json",
                                                   kConfigMaxDepth)) {}

  bool has_tokenizer() const override {
    return std::filesystem::exists(where() + "/tokenizer.json") ||
           std::filesystem::exists(where() + "/tokenizer.model");
  }
  std::unique_ptr<text::Tokenizer> make_tokenizer() const override { return make_folder_tokenizer(where()); }
  std::optional<text::ChatTemplate> chat_template() const override { return folder_chat_template(where()); }

 protected:
  std::vector<std::string_view> fingerprint_parts() const override {
    std::vector<std::string_view> parts = weights_.parts();
    parts.insert(parts.begin(), config_text_);
    return parts;
  }
  std::vector<std::string_view> mapped_parts() const override {
    std::vector<std::string_view> parts;
    for (const SafetensorsFile& file : weights_.files()) parts.push_back(file.bytes());
    return parts;
  }

 private:
  FolderCheckpoint(const std::string& folder, const JsonObject& config)
      : MappedCheckpoint(folder, json_decoder(config).config_from_json(decoder_part(config))),
        config_text_(config.dump()),
        weights_(SafetensorsShards::open(folder)) {
    set_default_name(folder_name(folder));
    StoredTensors stored;
    for (const SafetensorsTensor* tensor : weights_.tensors()) {
      stored[tensor->name] = {tensor->shape, tensor->type, tensor->data, {}, {}};
    }
    const ArchitectureEntry& family = json_decoder(config);
    if (family.json_names == nullptr) {
      adopt(stored, {}, family);
      return;
    }
    check_shared_embedding(stored);
    drop_prediction_layers(config, std::string(family.json_names(this->config()).layer), stored);
    if (this->config().tied_head) {
      DecoderConfig untied = this->config();
      untied.tied_head = false;
      settle_tied_head(stored, map_tensors(untied, family.json_names(untied)));
    }
    adopt(stored, map_tensors(this->config(), family.json_names(this->config())), family);
  }

  /// Encoder and decoder have one embedding; files of both kinds may hold it up to three times.
  void check_shared_embedding(const StoredTensors& stored) const {
    const auto shared = stored.find("shared.weight");
    if (shared == stored.end()) return;
    for (const char* name : {"encoder.embed_tokens.weight", "decoder.embed_tokens.weight"}) {
      const auto own = stored.find(name);
      if (own == stored.end() || have_same_values(own->second, shared->second)) continue;
      throw ModelError(
          fmt::format("model: {}: tensor '{}' differs from shared.weight; one embedding for encoder and "
                      "decoder is supported",
                      where(), name));
    }
  }

  /// Layers behind the last one that predict several tokens at once (DeepSeek-V3); nothing here runs them.
  void drop_prediction_layers(const JsonObject& file, const std::string& layer_prefix, StoredTensors& stored) const {
    const std::int64_t n = decoder_part(file).integer_or("num_nextn_predict_layers", 0, 0, 1 << 10);
    for (std::int64_t i = 0; i < n; ++i) {
      const std::string prefix = fmt::format("{}{}.", layer_prefix, config().n_layers() + i);
      for (auto entry = stored.lower_bound(prefix); entry != stored.end() && starts_with(entry->first, prefix);)
        entry = stored.erase(entry);
    }
  }

  std::string config_text_;
  SafetensorsShards weights_;
};

/// Models trained here describe themselves; everything else goes through the resolver.
DecoderConfig read_json_config(const std::string& path) {
  const JsonObject config = JsonObject::parse(read_text_file(path), path, kConfigMaxDepth);
  if (config.required_text("model_type") == "fathom") return parse_fathom_config(config);
  return resolve_hf_positions(config);
}

/// Folder of a file, also where the path names none.
std::string parent_folder(const std::string& path) {
  const auto parent = std::filesystem::path(path).parent_path();
  return parent.empty() ? "." : parent.string();
}

}  // namespace

const Registry<ArchitectureEntry>& architectures() {
  static const Registry<ArchitectureEntry> registry("architecture", {
#define FATHOM_ARCHITECTURE(name) families::name##_entry(),
#include "harness/checkpoint/architectures.inc"
#undef FATHOM_ARCHITECTURE
                                                                    });
  return registry;
}

bool is_ignored_tensor(std::string_view name) {
  for (const char* exact :
       {"rope_freqs.weight", "rope_factors_short.weight", "rope_factors_long.weight", "lm_head.weight",
        "embed_out.weight", "output.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight"}) {
    if (name == exact) return true;
  }
  for (const char* end :
       {".rotary_emb.inv_freq", ".attn.bias", ".attn.masked_bias", ".attention.bias", ".attention.masked_bias",
        ".rope_freqs.weight", ".EncDecAttention.relative_attention_bias.weight", ".slope_rate", ".query_decay",
        ".key_decay", ".diagonal_decay"}) {
    if (ends_with(name, end)) return true;
  }
  return false;
}

std::unique_ptr<Checkpoint> open_checkpoint(const std::string& path) {
  if (std::filesystem::is_directory(path)) return std::make_unique<FolderCheckpoint>(path);
  if (ends_with(path, ".gguf")) return std::make_unique<GgufCheckpoint>(path);
  if (!std::filesystem::exists(path)) throw ModelError(fmt::format("model: {} does not exist", path));
  throw ModelError(
      fmt::format("model: {} is neither a .gguf file nor a folder with config.json and model.safetensors", path));
}

DecoderConfig read_config(const std::string& path) {
  if (ends_with(path, ".gguf")) {
    DecoderConfig config = resolve_gguf_positions(GgufFile::open(path));
    if (config.name.empty()) config.name = file_stem(path);
    return config;
  }
  const bool is_folder = std::filesystem::is_directory(path);
  DecoderConfig config = read_json_config(is_folder ? path + "/config.json" : path);
  if (config.name.empty()) config.name = folder_name(is_folder ? path : parent_folder(path));
  return config;
}

}  // namespace fathom::checkpoint
