// A program as it was written for smmalloc: a swarm of particles, which are born and die in several threads
// at once, in pools of their own.
//
//   c++ smmalloc_swarm.cc $(pkg-config --cflags --libs hummock-smmalloc) && ./a.out
#include <smmalloc.h>

#include <cstdio>
#include <thread>
#include <vector>

namespace {

struct Particle {
  float place[3], speed[3];
  int born, trail_length;
  float* trail;
};

constexpr int kThreads = 3, kSteps = 200, kBirths = 500, kLife = 20;

Particle* give_birth(sm_allocator space, int step) {
  auto* particle = static_cast<Particle*>(_sm_malloc(space, sizeof(Particle), alignof(Particle)));
  *particle = {{0, 0, 0}, {1, 0.5f, 0.25f}, step, 0, nullptr};
  return particle;
}

void move(sm_allocator space, Particle& particle) {
  for (int i = 0; i < 3; ++i) particle.place[i] += particle.speed[i];
  const size_t bytes = sizeof(float) * static_cast<size_t>(particle.trail_length + 1);
  particle.trail = static_cast<float*>(_sm_realloc(space, particle.trail, bytes, alignof(float)));
  particle.trail[particle.trail_length++] = particle.place[0];
}

// Returns how far all particles went.
double live(sm_allocator space) {
  _sm_allocator_thread_cache_create(space, sm::CACHE_WARM, {4096, 4096, 4096, 4096, 4096});
  std::vector<Particle*> swarm;
  double way = 0;
  for (int step = 0; step < kSteps; ++step) {
    for (int i = 0; i < kBirths; ++i) swarm.push_back(give_birth(space, step));
    for (Particle*& particle : swarm) {
      move(space, *particle);
      if (step - particle->born < kLife && step + 1 < kSteps) continue;
      way += particle->trail[particle->trail_length - 1];
      _sm_free(space, particle->trail);
      _sm_free(space, particle);
      particle = nullptr;
    }
    swarm.erase(std::remove(swarm.begin(), swarm.end(), nullptr), swarm.end());
  }
  _sm_allocator_thread_cache_destroy(space);
  return way;
}

}  // namespace

int main() {
  sm_allocator space = _sm_allocator_create(8, 8 * 1024 * 1024);
  if (space == nullptr) return 1;
  std::vector<double> ways(kThreads);
  std::vector<std::thread> threads;
  for (double& way : ways) threads.emplace_back([&way, space] { way = live(space); });
  for (std::thread& thread : threads) thread.join();
  for (const double way : ways) std::printf("the particles of this thread went %.0f\n", way);
  const bool same = ways[0] > 0 && ways[1] == ways[0] && ways[2] == ways[0];
  _sm_allocator_destroy(space);
  return same ? 0 : 1;
}
