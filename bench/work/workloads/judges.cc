// Loads that others published, written anew from their descriptions. They judge: nothing is tuned on them.
#include "judges.h"

#include <semaphore.h>

#include "blocks.h"

namespace {

// After Larson and Krishnan, "Memory allocation for long-running server applications" (ISMM 1998): a thread
// replaces random blocks of its array for a while, starts a thread that inherits the array, and ends.
template <bool kSized>
class Larson final : public Load {
 public:
  void set_up(Run& run) override {
    arrays_ = arena_array<char*>(kBlocks * run.threads());
    ends_ = arena_array<sem_t>(run.threads());
    for (unsigned i = 0; i < run.threads(); ++i) sem_init(&ends_[i], 0, 0);
  }

  void prepare(Worker& worker) override {
    for (size_t i = 0; i < kBlocks; ++i) array(worker)[i] = make(worker);
  }

  // A line of heirs, one alive at a time but for the moment in which the last one ends.
  void work(Worker& worker) override {
    pthread_detach(start_thread(live_a_life, &worker));
    while (sem_wait(&ends_[worker.index]) != 0) {
    }
  }

  void clean(Worker& worker) override {
    for (size_t i = 0; i < kBlocks; ++i) drop(worker, array(worker)[i]);
  }

 private:
  static constexpr size_t kBlocks = 1000;
  static constexpr size_t kMost = 512;
  static constexpr unsigned kLife = 10000;  // blocks replaced by one thread
  static constexpr unsigned kRound = 50;

  char** array(const Worker& worker) const { return arrays_ + worker.index * kBlocks; }

  char* make(Worker& worker) {
    const size_t size = worker.rng.between(kLeast, kMost);
    char* block = static_cast<char*>(operators_.allocate(size));
    stamp(block, size);
    worker.live_add(static_cast<int64_t>(size));
    return block;
  }

  void drop(Worker& worker, char* block) {
    const size_t size = retire(block);
    worker.live_add(-static_cast<int64_t>(size));
    if constexpr (kSized)
      operators_.release_sized(block, size);
    else
      operators_.release(block);
  }

  static void* live_a_life(void* argument) {
    Worker& worker = *static_cast<Worker*>(argument);
    Larson& load = *static_cast<Larson*>(worker.load);
    bool more = true;
    for (unsigned i = 0; i < kLife && more; i += kRound) {
      for (unsigned j = 0; j < kRound; ++j) {
        char*& slot = load.array(worker)[worker.rng.below(kBlocks)];
        load.drop(worker, slot);
        slot = load.make(worker);
      }
      more = worker.more(kRound);
    }
    if (more)
      pthread_detach(start_thread(live_a_life, &worker));
    else
      sem_post(&load.ends_[worker.index]);
    return nullptr;
  }

  Operators operators_;
  char** arrays_ = nullptr;
  sem_t* ends_ = nullptr;
};

// After Lever and Boreham, "malloc() performance in a multithreaded Linux environment" (USENIX 2000): some
// threads only allocate, the others only free what those made. Full batches lie in one pool behind a lock.
class Xmalloc final : public Load {
 public:
  void set_up(Run& run) override {
    if (run.threads() % 2 != 0) fail(2, "--threads: an even number, half of them free what the others make");
    producers_ = run.threads() / 2;
    batches_ = arena_array<Batch>(kBatches);
    for (size_t i = 0; i < kBatches; ++i) push(empty_, &batches_[i]);
  }

  void work(Worker& worker) override {
    if (worker.index % 2 == 0)
      produce(worker);
    else
      consume(worker);
  }

 private:
  static constexpr size_t kBatch = 100;
  static constexpr size_t kBatches = 64;
  static constexpr size_t kMost = 500;

  struct Batch {
    Batch* next;
    char* blocks[kBatch];
  };

  static void push(Batch*& list, Batch* batch) {
    batch->next = list;
    list = batch;
  }
  static Batch* pop(Batch*& list) {
    Batch* batch = list;
    if (batch != nullptr) list = batch->next;
    return batch;
  }

  // Waits; null when there will be none, as all producers have ended.
  Batch* take(Batch*& list) {
    pthread_mutex_lock(&lock_);
    while (list == nullptr && producers_ != 0) pthread_cond_wait(&changed_, &lock_);
    Batch* batch = pop(list);
    pthread_mutex_unlock(&lock_);
    return batch;
  }

  void give(Batch*& list, Batch* batch) {
    pthread_mutex_lock(&lock_);
    push(list, batch);
    pthread_cond_broadcast(&changed_);
    pthread_mutex_unlock(&lock_);
  }

  void produce(Worker& worker) {
    do {
      Batch* batch = take(empty_);
      for (char*& block : batch->blocks) block = make_block(worker, worker.rng.between(kLeast, kMost));
      give(full_, batch);
    } while (worker.more(kBatch));
    pthread_mutex_lock(&lock_);
    --producers_;
    pthread_cond_broadcast(&changed_);
    pthread_mutex_unlock(&lock_);
  }

  void consume(Worker& worker) {
    while (Batch* batch = take(full_)) {
      for (char* block : batch->blocks) drop_block(worker, block);
      give(empty_, batch);
    }
  }

  pthread_mutex_t lock_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t changed_ = PTHREAD_COND_INITIALIZER;
  unsigned producers_ = 0;
  Batch* batches_ = nullptr;
  Batch* empty_ = nullptr;
  Batch* full_ = nullptr;
};

// After the published descriptions of MicroQuill's sh6bench and sh8bench: waves of small blocks of mixed
// sizes, part of which are freed at once in reverse, part a wave later in order, and some outlive many waves.
// With `kExchanges` the long-lived ones are freed by another thread.
template <bool kExchanges>
class Waves final : public Load {
 public:
  void set_up(Run& run) override {
    books_ = arena_array<Books>(run.threads());
    mail_ = arena_array<std::atomic<Wave*>>(run.threads());
  }

  void work(Worker& worker) override {
    Books& mine = books_[worker.index];
    do {
      make_wave(worker, mine.fresh);
      for (size_t i = kPart; i-- > 0;) drop_block(worker, mine.fresh.quarter[0][i]);
      for (size_t i = kPart; i-- > 0;) drop_block(worker, mine.fresh.quarter[1][i]);
      drop_all(worker, mine.last, kPart);
      memcpy(mine.last, mine.fresh.quarter[2], sizeof mine.last);
      keep_long(worker, mine);
      ++mine.wave;
    } while (worker.more(4 * kPart));
  }

  void clean(Worker& worker) override {
    Books& mine = books_[worker.index];
    drop_all(worker, mine.last, kPart);
    for (Wave& wave : mine.old) drop_all(worker, wave.blocks, kPart);
    // Who comes to free the others' is indifferent; what is in the post is freed by finish.
  }

  void finish(Run& run) override {
    for (unsigned i = 0; i < run.threads(); ++i) {
      Wave* wave = mail_[i].load(std::memory_order_acquire);
      for (size_t j = 0; wave != nullptr && j < kPart; ++j) {
        retire(wave->blocks[j]);
        free(wave->blocks[j]);
      }
      free(wave);
    }
  }

 private:
  static constexpr size_t kPart = 500;  // a quarter of a wave
  static constexpr size_t kOld = 16;    // waves that a long-lived block outlives

  struct Wave {
    char* blocks[kPart];
  };
  struct Fresh {
    char* quarter[4][kPart];
  };
  struct Books {
    Fresh fresh;
    char* last[kPart];
    Wave old[kOld];
    uint64_t wave;
  };

  // The smaller, the more often; blocks of a quarter lie between those of the others.
  static size_t draw(Rng& rng) {
    const size_t kind = rng.below(16);
    if (kind < 10) return rng.between(kLeast, 64);
    return kind < 15 ? rng.between(65, 256) : rng.between(257, 1000);
  }

  static void make_wave(Worker& worker, Fresh& fresh) {
    for (size_t i = 0; i < kPart; ++i)
      for (auto& quarter : fresh.quarter) quarter[i] = make_block(worker, draw(worker.rng));
  }

  void keep_long(Worker& worker, Books& mine) {
    Wave& place = mine.old[mine.wave % kOld];
    if constexpr (kExchanges) {
      if (place.blocks[0] != nullptr) hand_on(worker, place);
    } else {
      drop_all(worker, place.blocks, kPart);
    }
    memcpy(place.blocks, mine.fresh.quarter[3], sizeof place.blocks);
  }

  // The wave goes to the next thread; what lies there since nobody came for it is freed here.
  void hand_on(Worker& worker, Wave& place) {
    auto& next = mail_[(worker.index + 1) % worker.threads];
    Wave* sent = static_cast<Wave*>(malloc(sizeof(Wave)));
    if (sent == nullptr) fail_memory(sizeof(Wave));
    *sent = place;
    free_wave(worker, next.exchange(sent, std::memory_order_acq_rel));
    free_wave(worker, mail_[worker.index].exchange(nullptr, std::memory_order_acq_rel));
  }

  static void free_wave(Worker& worker, Wave* wave) {
    if (wave == nullptr) return;
    drop_all(worker, wave->blocks, kPart);
    free(wave);
  }

  Books* books_ = nullptr;
  std::atomic<Wave*>* mail_ = nullptr;
};

template <class TheLoad>
void run_load(Run& run) {
  TheLoad load;
  run.execute(load);
}

constexpr Workload judge(const char* name, const char* title, const char* description, const char* unit,
                         Threads threads, void (*run)(Run&)) {
  return {.name = name,
          .group = "judges",
          .title = title,
          .description = description,
          .unit = unit,
          .threads = threads,
          .sizes = {},
          .normal = {.seconds = 0.4, .settle = 0.5},
          .full = {.seconds = 1, .settle = 1},
          .run = run};
}

constexpr char kLarson[] =
    "Each of so many lines of threads has 1,000 blocks of 16 to 512 bytes and replaces random ones by "
    "operator new and delete; after 10,000 the thread starts another that inherits the blocks, and ends.";
constexpr char kSized[] =
    "As larson, but operator delete is told the size, as the containers of libstdc++ do.";
constexpr char kXmalloc[] =
    "Half of the threads only allocate, blocks of 16 to 500 bytes, the others only free; they pass on 100 at "
    "a time through a pool behind a lock.";
constexpr char kWaves[] =
    "Waves of 2,000 blocks of 16 to 1,000 bytes, most of them small: half are freed at once, the last first, "
    "a quarter a wave later in order, a quarter after 16 waves.";
constexpr char kExchange[] = "As sh6, but what lived for 16 waves is freed by the next thread.";

constexpr Workload kWorkloads[] = {
    judge("larson", "After Larson: threads inherit blocks", kLarson, "block replaced", {{2, 8}},
          run_load<Larson<false>>),
    judge("larson-sized", "After Larson, with sized delete", kSized, "block replaced", {{2, 8}},
          run_load<Larson<true>>),
    judge("xmalloc", "After xmalloc: some allocate, others free", kXmalloc, "block passed", {{2, 8}},
          run_load<Xmalloc>),
    judge("sh6", "After sh6bench: waves of small blocks", kWaves, "block allocated and freed", {{1, 2, 8}},
          run_load<Waves<false>>),
    judge("sh8", "After sh8bench: waves, some freed elsewhere", kExchange, "block allocated and freed",
          {{2, 8}}, run_load<Waves<true>>),
};

}  // namespace

Family judge_family() {
  return family_of(kWorkloads);
}
