"""Attention with a bias by distance as Triton kernels: the implementation of GPUs.

`tiles.py` holds what the kernels share, `forward.py`, `decode.py` and `backward.py` the kernels, `launch.py` the
call, `sizes.py` the sizes of tiles, and `resources.py` compiles every variant without a GPU. Run and tested in Triton's
interpreter on a CPU and compiled for four GPUs; never timed on one.
"""
