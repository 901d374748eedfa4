// The page of figures of this process; its format and its protocol are in hummock/page.h.
#ifndef HUMMOCK_OBSERVE_PAGE_H
#define HUMMOCK_OBSERVE_PAGE_H

namespace hummock::observe {

// Makes the page, if the option `observe` is on and the process is not privileged. Once, at start.
void start_page();

}  // namespace hummock::observe

#endif  // HUMMOCK_OBSERVE_PAGE_H
