// What the region log says about the whole run.
#ifndef HUMMOCK_OBSERVE_LOG_SUMMARY_H
#define HUMMOCK_OBSERVE_LOG_SUMMARY_H

namespace hummock::observe {

// Whether the process's malloc is this library's: the first thing to know of a program that is slow or
// crashes. Asks only where there is a log.
void log_active(bool (*is_active)());

// The process's figures, when the program ends. Does nothing when there is no log.
void log_summary();

}  // namespace hummock::observe

#endif  // HUMMOCK_OBSERVE_LOG_SUMMARY_H
