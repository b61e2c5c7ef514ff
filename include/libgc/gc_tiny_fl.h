/* Sizes of objects in granules, for gc_inline.h. */
#ifndef GC_TINY_FL_H
#define GC_TINY_FL_H
#define GC_GRANULE_BYTES 16
#define GC_GRANULE_WORDS 2
#define GC_WORDS_TO_GRANULES(words) ((words) / GC_GRANULE_WORDS)
/* Lists of free objects that a program keeps, by granules: objects of fewer than this many. */
#ifndef GC_TINY_FREELISTS
#define GC_TINY_FREELISTS 25
#endif
#define GC_RAW_BYTES_FROM_INDEX(granules) ((granules) * GC_GRANULE_BYTES)
#endif
