# One minimum per dependency, with the reason. Debian 12 is the oldest system that is built and tested.
set(FATHOM_TORCH_MIN 1.13)       # Debian 12's LibTorch
set(FATHOM_FMT_MIN 9.1)          # Debian 12
set(FATHOM_BOOST_MIN 1.74)       # Debian 12
set(FATHOM_CATCH2_MIN 2.13)      # Debian 12 has version 2, Debian 13 version 3; tests/support/catch.h hides the difference
set(FATHOM_SQLITE_MIN 3.40)      # STRICT tables
set(FATHOM_JSON_MIN 3.11)        # Debian 12
set(FATHOM_DNNL_MIN 2.6)         # Debian 12; harness/kernels/gemm.cpp covers versions 2 and 3
