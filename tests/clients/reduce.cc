// SPDX-License-Identifier: Apache-2.0
// Copyright the libcomm authors
//
// Sums of a C++ program by the C functions of MPI. Rank 0 prints one line for each kind of
// call: its name and the largest error. The values are small integers, so that exact
// sums have none.

#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <stdexcept>
#include <vector>

namespace {

constexpr int count = 65536;

class Communicator {
public:
  explicit Communicator(MPI_Comm parent) {
    MPI_Comm_dup(parent, &comm_);
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &size_);
  }
  Communicator(const Communicator &) = delete;
  Communicator &operator=(const Communicator &) = delete;
  ~Communicator() {
    MPI_Comm_free(&comm_);
  }

  int rank() const {
    return rank_;
  }
  int size() const {
    return size_;
  }
  operator MPI_Comm() const {
    return comm_;
  }

private:
  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 0;
};

void must(int code, const char *what) {
  if (code != MPI_SUCCESS) {
    throw std::runtime_error(what);
  }
}

std::vector<float> values_of(int rank) {
  std::vector<float> values(count);
  for (int i = 0; i < count; i++) {
    values[static_cast<size_t>(i)] = static_cast<float>((i * 7 + rank * 13) % 61 - 30);
  }
  return values;
}

float worst(const std::vector<float> &values, const std::vector<float> &exact) {
  float most = 0;
  for (size_t i = 0; i < values.size(); i++) {
    most = std::max(most, std::fabs(values[i] - exact[i]));
  }
  return most;
}

void reduce() {
  Communicator comm(MPI_COMM_WORLD);
  auto say = [&](const char *name, float error) {
    if (comm.rank() == 0) {
      std::printf("%s %f\n", name, static_cast<double>(error));
    }
  };
  std::vector<float> exact(count);
  for (int r = 0; r < comm.size(); r++) {
    const auto other = values_of(r);
    std::transform(exact.begin(), exact.end(), other.begin(), exact.begin(), std::plus<float>());
  }
  const auto own = values_of(comm.rank());
  std::vector<float> sum(count);
  must(MPI_Allreduce(own.data(), sum.data(), count, MPI_FLOAT, MPI_SUM, comm), "allreduce");
  say("allreduce", worst(sum, exact));

  sum = own;
  must(MPI_Allreduce(MPI_IN_PLACE, sum.data(), count, MPI_FLOAT, MPI_SUM, comm), "in place");
  say("in place", worst(sum, exact));

  // Two at once, mixed with a message to the neighbour.
  std::vector<float> first(count), second(count);
  int token = comm.rank(), got = -1;
  MPI_Request requests[4];
  must(MPI_Iallreduce(own.data(), first.data(), count, MPI_FLOAT, MPI_SUM, comm, &requests[0]),
       "iallreduce");
  must(MPI_Irecv(&got, 1, MPI_INT, (comm.rank() + comm.size() - 1) % comm.size(), 3, comm,
                 &requests[1]),
       "irecv");
  must(MPI_Isend(&token, 1, MPI_INT, (comm.rank() + 1) % comm.size(), 3, comm, &requests[2]),
       "isend");
  must(MPI_Iallreduce(own.data(), second.data(), count, MPI_FLOAT, MPI_SUM, comm, &requests[3]),
       "iallreduce");
  must(MPI_Waitall(4, requests, MPI_STATUSES_IGNORE), "waitall");
  say("iallreduce", std::max(worst(first, exact), worst(second, exact)));
  say("message",
      std::fabs(static_cast<float>(got - (comm.rank() + comm.size() - 1) % comm.size())));

  std::vector<double> doubles(own.begin(), own.end());
  must(MPI_Allreduce(MPI_IN_PLACE, doubles.data(), count, MPI_DOUBLE, MPI_SUM, comm), "doubles");
  say("doubles", worst(std::vector<float>(doubles.begin(), doubles.end()), exact));
}

} // namespace

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int result = 0;
  try {
    reduce();
  } catch (const std::exception &error) {
    std::fprintf(stderr, "reduce: %s failed\n", error.what());
    result = 1;
  }
  MPI_Finalize();
  return result;
}
