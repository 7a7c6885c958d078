#pragma once
// The block formats of ggml, one function each, vectorised and chosen at run time for the processor. Layouts and
// formulas are stated beside the code.

#include <cstdint>

namespace fathom::checkpoint {

void dequantize_f16(const std::uint8_t* blocks, std::int64_t n_blocks, float* out);
void dequantize_bf16(const std::uint8_t* blocks, std::int64_t n_blocks, float* out);
void dequantize_q4_0(const std::uint8_t* blocks, std::int64_t n_blocks, float* out);
void dequantize_q4_1(const std::uint8_t* blocks, std::int64_t n_blocks, float* out);
void dequantize_q5_0(const std::uint8_t* blocks, std::int64_t n_blocks, float* out);
void dequantize_q5_1(const std::uint8_t* blocks, std::int64_t n_blocks, float* out);
void dequantize_q8_0(const std::uint8_t* blocks, std::int64_t n_blocks, float* out);
void dequantize_mxfp4(const std::uint8_t* blocks, std::int64_t n_blocks, float* out);
void dequantize_q2_k(const std::uint8_t* blocks, std::int64_t n_blocks, float* out);
void dequantize_q3_k(const std::uint8_t* blocks, std::int64_t n_blocks, float* out);
void dequantize_q4_k(const std::uint8_t* blocks, std::int64_t n_blocks, float* out);
void dequantize_q5_k(const std::uint8_t* blocks, std::int64_t n_blocks, float* out);
void dequantize_q6_k(const std::uint8_t* blocks, std::int64_t n_blocks, float* out);

}  // namespace fathom::checkpoint
