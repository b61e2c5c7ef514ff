#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct node { struct node *left, *right; int key; };
static struct node *insert(struct node *n, int key) {
    if (!n) { n = calloc(1, sizeof *n); n->key = key; return n; }
    if (key < n->key) n->left = insert(n->left, key); else n->right = insert(n->right, key);
    return n;
}
static long sum(struct node *n) { return n ? n->key + sum(n->left) + sum(n->right) : 0; }
int main(void) {
    struct node *root = NULL; unsigned x = 1;
    for (int i = 0; i < 20000; i++) { x = x * 1103515245 + 12345; root = insert(root, x >> 16 & 0x7fff); }
    printf("%ld\n", sum(root)); return 5;
}
