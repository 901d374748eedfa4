// The profile as a file, for who asks inside the process.
#ifndef HUMMOCK_OBSERVE_PROFILE_H
#define HUMMOCK_OBSERVE_PROFILE_H

namespace hummock::observe {

// As hummock_profile_write.
int write_profile(const char* path);

}  // namespace hummock::observe

#endif  // HUMMOCK_OBSERVE_PROFILE_H
