/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gemm - a matrix product to run beside a polling grid: C = A x B, n x n floats, n a
 * multiple of 32, one 32 x 32 tile per block. It keeps the multiprocessors busy and
 * need not be fast.
 */
extern "C" __global__ void gemm(const float *a, const float *b, float *c, unsigned int n)
{
	__shared__ float ta[32][33], tb[32][33];
	unsigned int x = threadIdx.x, y = threadIdx.y;
	unsigned int column = blockIdx.x * 32 + x, row = blockIdx.y * 32 + y;
	float sum = 0;

	for (unsigned int k = 0; k < n; k += 32) {
		ta[y][x] = a[(size_t)row * n + k + x];
		tb[y][x] = b[(size_t)(k + y) * n + column];
		__syncthreads();
		for (unsigned int i = 0; i < 32; i++)
			sum += ta[y][i] * tb[i][x];
		__syncthreads();
	}
	c[(size_t)row * n + column] = sum;
}
