// The two words of a block, and a processor that keeps its stores back for a while, in order, and sees its own:
// each thread has a buffer, which is written out at any time, at the latest at a fence or an exchange.

#define LIVE 0  // what a live block has in its words, as the program left it
byte link = LIVE;
byte check = LIVE;

#define STORE_BUFFER \
  byte kept_link, kept_check; \
  bit has_link, has_check, link_first

// A store of each word may be waiting, and which is the older.
#define LOAD_LINK (has_link -> kept_link : link)
#define LOAD_CHECK (has_check -> kept_check : check)

#define OLDEST_OUT \
  :: atomic { has_link && (!has_check || link_first) -> link = kept_link; has_link = 0; kept_link = 0; link_first = 0 } \
  :: atomic { has_check && (!has_link || !link_first) -> check = kept_check; has_check = 0; kept_check = 0 }

inline some_out() {
  do
  OLDEST_OUT
  :: break
  od
}
inline fence() {
  do
  OLDEST_OUT
  :: !has_link && !has_check -> break
  od
}

inline store_link(value) {
  atomic { !has_link -> kept_link = value; has_link = 1; link_first = !has_check }
  some_out()
}
inline store_check(value) {
  atomic { !has_check -> kept_check = value; has_check = 1; link_first = has_link }
  some_out()
}
