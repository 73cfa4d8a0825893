// SPDX-License-Identifier: MIT
/*
 * An MPI program: a ring of messages of many sizes, collectives and one-sided writes, all of known
 * content. Rank 0 prints what was moved.
 *
 * usage: kxfer-mpi-ring [ROUNDS]
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST (2 * 1024 * 1024)

static int rank, ranks;

static void check(int condition, const char* what) {
    if (condition) return;
    fprintf(stderr, "rank %d: wrong: %s\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void fill(unsigned char* at, int length, int number) {
    for (int i = 0; i < length; i++) at[i] = (unsigned char)(i * 3 + i / 255 + number);
}

static int holds(const unsigned char* at, int length, int number) {
    for (int i = 0; i < length; i++)
        if (at[i] != (unsigned char)(i * 3 + i / 255 + number)) return 0;
    return 1;
}

static void ring(unsigned char* out, unsigned char* in) {
    int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;

    for (int length = 0; length <= LONGEST; length = length ? length * 8 : 1) {
        MPI_Status status;
        int count;

        fill(out, length, rank);
        memset(in, 0, LONGEST);
        MPI_Sendrecv(out, length, MPI_BYTE, right, length, in, LONGEST, MPI_BYTE, left, MPI_ANY_TAG,
                     MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_BYTE, &count);
        check(count == length && status.MPI_TAG == length && status.MPI_SOURCE == left, "status");
        check(holds(in, length, left), "Sendrecv");
    }
}

static void probe(unsigned char* out, unsigned char* in) {
    int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks, count;
    MPI_Request request;
    MPI_Status status;

    fill(out, 50000, rank);
    MPI_Isend(out, 50000, MPI_BYTE, right, 7, MPI_COMM_WORLD, &request);
    MPI_Probe(MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_BYTE, &count);
    check(count == 50000 && status.MPI_SOURCE == left, "Probe");
    MPI_Recv(in, count, MPI_BYTE, left, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    check(holds(in, count, left), "Recv after Probe");
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void collectives(void) {
    long sum = 0, one = rank + 1, all[64], *many = calloc(100000, sizeof(long));

    MPI_Allreduce(&one, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    check(sum == (long)ranks * (ranks + 1) / 2, "Allreduce");
    MPI_Allgather(&one, 1, MPI_LONG, all, 1, MPI_LONG, MPI_COMM_WORLD);
    for (int i = 0; i < ranks; i++) check(all[i] == i + 1, "Allgather");
    for (int i = 0; i < 100000; i++) many[i] = i + rank;
    MPI_Allreduce(MPI_IN_PLACE, many, 100000, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < 100000; i++)
        check(many[i] == (long)i * ranks + (long)ranks * (ranks - 1) / 2, "Allreduce of many");
    free(many);
}

static void one_sided(void) {
    int *memory, right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
    MPI_Win window;

    MPI_Win_allocate(1000 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    memset(memory, 0, 1000 * sizeof(int));
    MPI_Win_fence(0, window);
    MPI_Put(&rank, 1, MPI_INT, right, 500, 1, MPI_INT, window);
    MPI_Win_fence(0, window);
    check(memory[500] == left, "Put");
    MPI_Win_free(&window);
}

int main(int argc, char** argv) {
    unsigned char *out = malloc(LONGEST), *in = malloc(LONGEST);
    int rounds = argc > 1 ? atoi(argv[1]) : 1;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int round = 1; round <= rounds; round++) {
        ring(out, in);
        probe(out, in);
        collectives();
        one_sided();
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0 && rounds > 1) printf("round %d of %d\n", round, rounds);
        fflush(stdout);
    }
    if (rank == 0) printf("ring of %d ranks: all right\n", ranks);
    MPI_Finalize();
    return 0;
}
