! SPDX-License-Identifier: Apache-2.0
! Copyright the libcomm authors
!
! Sums of a Fortran program, by `use mpi` and by `use mpi_f08`: `reduce mpi` or `reduce f08`.
! Rank 0 prints one line for each kind of call: its name and the largest error. The values
! are small integers, so that exact sums have none.

module values
  implicit none
  integer, parameter :: n = 65536
contains
  pure function value(i, rank)
    integer, intent(in) :: i, rank
    real :: value
    value = real(mod(i * 7 + rank * 13, 61) - 30)
  end function value

  function own(rank) result(x)
    integer, intent(in) :: rank
    real :: x(n)
    integer :: i
    do i = 1, n
      x(i) = value(i, rank)
    end do
  end function own

  function total(ranks) result(x)
    integer, intent(in) :: ranks
    real :: x(n)
    integer :: r
    x = 0
    do r = 0, ranks - 1
      x = x + own(r)
    end do
  end function total

  subroutine say(rank, name, error)
    integer, intent(in) :: rank
    character(*), intent(in) :: name
    real, intent(in) :: error
    if (rank == 0) print '(a, 1x, f0.6)', name, error
  end subroutine say
end module values

subroutine with_mpi
  use mpi
  use values
  implicit none
  integer :: rank, ranks, comm, half, grid, request, requests(2), code, provided, other, i, part
  integer :: status(MPI_STATUS_SIZE)
  integer, allocatable :: counts(:)
  real, save :: x(n), y(n), exact(n)
  real :: all(2)
  external MPIX_Allreduce_init
  call MPI_Init_thread(MPI_THREAD_FUNNELED, provided, code)
  call MPI_Query_thread(other, code)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, code)
  exact = total(ranks)

  x = own(rank)
  call MPI_Allreduce(x, y, n, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, code)
  call say(rank, 'allreduce', maxval(abs(y - exact)))
  y = x
  call MPI_Allreduce(MPI_IN_PLACE, y, n, MPI_REAL4, MPI_SUM, MPI_COMM_WORLD, code)
  call say(rank, 'in place', maxval(abs(y - exact)))
  call MPI_Iallreduce(x, y, n, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, request, code)
  call MPI_Wait(request, status, code)
  call say(rank, 'iallreduce', maxval(abs(y - exact)))

  call MPI_Comm_dup(MPI_COMM_WORLD, comm, code)
  call MPI_Comm_set_name(comm, '  gradients  ', code)
  part = n / ranks
  y(1:part) = -1
  call MPI_Reduce_scatter_block(x, y, part, MPI_REAL, MPI_SUM, comm, code)
  call say(rank, 'reduce_scatter_block', maxval(abs(y(1:part) - exact(rank*part+1:(rank+1)*part))))
  allocate (counts(ranks))
  counts = part
  y(1:part) = -1
  call MPI_Ireduce_scatter(x, y, counts, MPI_REAL, MPI_SUM, comm, request, code)
  call MPI_Wait(request, MPI_STATUS_IGNORE, code)
  call say(rank, 'ireduce_scatter', maxval(abs(y(1:part) - exact(rank*part+1:(rank+1)*part))))
  y(rank*part+1:(rank+1)*part) = exact(rank*part+1:(rank+1)*part)
  call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, y, part, MPI_REAL, comm, code)
  call say(rank, 'allgather', maxval(abs(y(1:part*ranks) - exact(1:part*ranks))))
  if (rank /= 0) y = -1
  call MPI_Bcast(y, part * ranks, MPI_REAL, 0, comm, code)
  call say(rank, 'bcast', maxval(abs(y(1:part*ranks) - exact(1:part*ranks))))
  call MPI_Comm_free(comm, code)

  call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), rank, half, code)
  i = 1
  call MPI_Allreduce(MPI_IN_PLACE, i, 1, MPI_INTEGER, MPI_SUM, half, code)
  call say(rank, 'split', real(abs(i - (ranks + 1 - mod(rank, 2)) / 2)))
  call MPI_Comm_disconnect(half, code)
  call MPI_Cart_create(MPI_COMM_WORLD, 1, (/ranks/), (/.true./), .false., grid, code)
  y = -1
  call MPIX_Allreduce_init(x, y, n, MPI_REAL, MPI_SUM, grid, MPI_INFO_NULL, request, code)
  do i = 1, 2
    call MPI_Start(request, code)
    call MPI_Wait(request, MPI_STATUS_IGNORE, code)
  end do
  call MPI_Request_free(request, code)
  call say(rank, 'persistent', maxval(abs(y - exact)))
  call MPI_Send_init(x, 1, MPI_REAL, mod(rank + 1, ranks), 7, grid, requests(1), code)
  call MPI_Recv_init(y, 1, MPI_REAL, mod(rank + ranks - 1, ranks), 7, grid, requests(2), code)
  call MPI_Startall(2, requests, code)
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, code)
  call MPI_Request_free(requests(1), code)
  call MPI_Request_free(requests(2), code)
  call say(rank, 'startall', abs(y(1) - value(1, mod(rank + ranks - 1, ranks))))
  all = (/real(abs(comm - MPI_COMM_NULL)), real(abs(requests(1) - MPI_REQUEST_NULL))/)
  call say(rank, 'handles', maxval(all) + real(abs(other - provided)) + real(code))
  call MPI_Finalize(code)
end subroutine with_mpi

subroutine with_f08
  use mpi_f08
  use values
  implicit none
  integer :: rank, ranks, code
  type(MPI_Comm) :: comm
  type(MPI_Request) :: request
  type(MPI_Status) :: status
  real, save, asynchronous :: x(n), y(n)
  real, save :: exact(n)
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  exact = total(ranks)

  x = own(rank)
  call MPI_Allreduce(x, y, n, MPI_REAL, MPI_SUM, MPI_COMM_WORLD)
  call say(rank, 'allreduce', maxval(abs(y - exact)))
  y = x
  call MPI_Allreduce(MPI_IN_PLACE, y, n, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, code)
  call say(rank, 'in place', maxval(abs(y - exact)) + real(code))
  call MPI_Comm_dup(MPI_COMM_WORLD, comm)
  call MPI_Comm_set_name(comm, 'gradients')
  call MPI_Iallreduce(x, y, n, MPI_REAL, MPI_SUM, comm, request)
  call MPI_Wait(request, status)
  call say(rank, 'iallreduce', maxval(abs(y - exact)))
  call MPI_Comm_free(comm)
  code = merge(0, 1, comm == MPI_COMM_NULL .and. request == MPI_REQUEST_NULL)
  call say(rank, 'handles', real(code))
  call MPI_Finalize()
end subroutine with_f08

program reduce
  implicit none
  character(8) :: binding
  call get_command_argument(1, binding)
  if (binding == 'f08') then
    call with_f08
  else
    call with_mpi
  end if
end program reduce
