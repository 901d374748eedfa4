/* The most frequent words of a text. All its records stand in one heap, which ends in one call: nothing is
 * freed piece by piece.
 *
 *   cc heap_words.c $(pkg-config --cflags --libs hummock) && ./a.out FILE */
#include <ctype.h>
#include <hummock/hummock.h>
#include <stdio.h>
#include <string.h>

enum { kBuckets = 4096, kShown = 5 };

struct word {
  struct word* next;
  unsigned count;
  char text[];
};

static struct word* find(hummock_heap_t* heap, struct word** table, const char* text, size_t length) {
  unsigned hash = 5381;
  for (size_t i = 0; i < length; ++i) hash = hash * 33 + (unsigned char)text[i];
  struct word** place = &table[hash % kBuckets];
  for (struct word* word = *place; word != NULL; word = word->next) {
    if (strlen(word->text) == length && memcmp(word->text, text, length) == 0) return word;
  }
  struct word* fresh = hummock_heap_calloc(heap, 1, sizeof *fresh + length + 1);
  if (fresh == NULL) return NULL;
  memcpy(fresh->text, text, length);
  fresh->next = *place;
  *place = fresh;
  return fresh;
}

static int read_words(FILE* file, hummock_heap_t* heap, struct word** table) {
  char text[64];
  size_t length = 0;
  for (int c = 0; c != EOF;) {
    c = fgetc(file);
    if (c != EOF && isalpha(c)) {
      if (length < sizeof text) text[length++] = (char)tolower(c);
    } else if (length != 0) {
      struct word* word = find(heap, table, text, length);
      if (word == NULL) return 0;
      ++word->count;
      length = 0;
    }
  }
  return 1;
}

int main(int argc, char** argv) {
  FILE* file = argc == 2 ? fopen(argv[1], "r") : NULL;
  hummock_heap_t* heap = hummock_heap_create();
  struct word** table = hummock_heap_calloc(heap, kBuckets, sizeof *table);
  if (file == NULL || table == NULL || !read_words(file, heap, table)) {
    fprintf(stderr, "usage: heap_words FILE\n");
    return 2;
  }
  fclose(file);

  for (int shown = 0; shown < kShown; ++shown) {
    struct word* best = NULL;
    for (int i = 0; i < kBuckets; ++i) {
      for (struct word* word = table[i]; word != NULL; word = word->next) {
        if (word->count != 0 && (best == NULL || word->count > best->count)) best = word;
      }
    }
    if (best == NULL) break;
    printf("%6u %s\n", best->count, best->text);
    best->count = 0;
  }
  hummock_heap_stats_t stats = {.size = sizeof stats};
  hummock_heap_stats(heap, &stats);
  printf("%zu blocks of %zu bytes in the heap\n", stats.live_blocks, stats.live_bytes);
  hummock_heap_destroy(heap);
  return stats.live_blocks > 1 ? 0 : 1;
}
