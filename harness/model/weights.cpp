#include "harness/model/weights.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <vector>

#include "harness/checkpoint/save.h"
#include "harness/core/error.h"

namespace fathom::model {
namespace {

constexpr std::int64_t kBlockValues = 1 << 20;  // 4 MB of float32 at a time

/// \param values  room for float32 rows on their way to another type: one for all tensors, because the allocator keeps
/// blocks of many sizes, which a load in bf16 showed as a third more memory than the weights.
void load_parameter(torch::Tensor& parameter, const std::string& name, const checkpoint::Checkpoint& source,
                    std::vector<float>& values) {
  // A vector counts as one row, as Checkpoint::read_float32 has it for its first dimension: rows are its elements.
  const std::int64_t rows = parameter.dim() == 0 ? 1 : parameter.size(0);
  const std::int64_t width = rows == 0 ? 0 : parameter.numel() / rows;
  const std::int64_t block = std::max<std::int64_t>(1, kBlockValues / std::max<std::int64_t>(1, width));
  for (std::int64_t begin = 0; begin < rows; begin += block) {
    const std::int64_t end = std::min(rows, begin + block);
    torch::Tensor target = parameter.narrow(0, begin, end - begin);
    if (parameter.scalar_type() == torch::kFloat32 && parameter.device().is_cpu() && parameter.is_contiguous()) {
      source.read_float32(name, begin, end, target.data_ptr<float>());
      continue;
    }
    values.resize(std::max(values.size(), static_cast<std::size_t>(target.numel())));
    source.read_float32(name, begin, end, values.data());
    target.copy_(at::from_blob(values.data(), target.sizes(), torch::kFloat32));
  }
}

}  // namespace

void load_weights(DecoderLm& model, const checkpoint::Checkpoint& checkpoint) {
  const at::NoGradGuard no_grad;
  const auto parameters = model.named_parameters();
  std::set<std::string> found;
  for (const checkpoint::TensorInfo& info : checkpoint.tensors()) {
    const torch::Tensor* parameter = parameters.find(info.name);
    if (parameter == nullptr)
      throw ModelError(
          fmt::format("model: the checkpoint holds a tensor '{}' that this architecture does not have", info.name));
    found.insert(info.name);
    const std::vector<std::int64_t> expected = parameter->sizes().vec();
    if (info.shape != expected) {
      throw ModelError(fmt::format("model: tensor '{}' has shape [{}], the configuration needs [{}]", info.name,
                                   fmt::join(info.shape, ", "), fmt::join(expected, ", ")));
    }
  }
  std::vector<float> values;
  for (const auto& item : parameters) {
    if (found.count(item.key()) == 0)
      throw ModelError(fmt::format("model: the checkpoint lacks the tensor '{}'", item.key()));
    torch::Tensor parameter = item.value();
    load_parameter(parameter, item.key(), checkpoint, values);
  }
}

void save_checkpoint(const DecoderLm& model, const std::string& tokenizer_json, const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw DataError(fmt::format("cannot make the folder '{}': {}", folder, error.message()));
  std::vector<torch::Tensor> kept;  // keeps converted values alive until they are written
  std::vector<checkpoint::TensorToSave> tensors;
  for (const auto& item : model.named_parameters()) {
    kept.push_back(item.value().detach().to(torch::kCPU, torch::kFloat32).contiguous());
    tensors.push_back({item.key(), kept.back().sizes().vec(), kept.back().data_ptr<float>()});
  }
  checkpoint::write_safetensors(folder + "/model.safetensors", tensors);
  checkpoint::write_file_atomically(folder + "/tokenizer.json", tokenizer_json);
  checkpoint::write_file_atomically(folder + "/config.json", checkpoint::fathom_config_json(model.config()));
}

}  // namespace fathom::model
