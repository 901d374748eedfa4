// Doubly linked lists through two fields of their members. Not synchronised.
#ifndef HUMMOCK_BASE_LIST_H
#define HUMMOCK_BASE_LIST_H

namespace hummock::base {

// A member stands in at most one list that uses the same pair of fields.
template <class T, T* T::*Next, T* T::*Prev>
class List {
 public:
  bool empty() const { return head_ == nullptr; }
  T* front() const { return head_; }
  T* back() const { return tail_; }

  void push_front(T* item) {
    item->*Prev = nullptr;
    item->*Next = head_;
    (head_ != nullptr ? head_->*Prev : tail_) = item;
    head_ = item;
  }

  void push_back(T* item) {
    item->*Next = nullptr;
    item->*Prev = tail_;
    (tail_ != nullptr ? tail_->*Next : head_) = item;
    tail_ = item;
  }

  void remove(T* item) {
    (item->*Prev != nullptr ? (item->*Prev)->*Next : head_) = item->*Next;
    (item->*Next != nullptr ? (item->*Next)->*Prev : tail_) = item->*Prev;
    item->*Next = item->*Prev = nullptr;
  }

  T* pop_front() {
    T* item = head_;
    if (item != nullptr) remove(item);
    return item;
  }

  void clear() { head_ = tail_ = nullptr; }

 private:
  T* head_ = nullptr;
  T* tail_ = nullptr;
};

}  // namespace hummock::base

#endif  // HUMMOCK_BASE_LIST_H
