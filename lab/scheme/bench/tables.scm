;; A hash table that counts words, and one of numbers that grows.
(define words (list->vector (map (lambda (i) (string-append "word" (number->string i))) (iota 5000))))
(define counts (make-hash-table))
(do ((i 0 (+ i 1))) ((= i 400000))
  (hash-table-update!/default counts (vector-ref words (modulo (* i i) 5000)) (lambda (n) (+ n 1)) 0))
(define squares (make-hash-table))
(do ((i 0 (+ i 1))) ((= i 200000)) (hash-table-set! squares i (* i i)))
(display (list (hash-table-count counts) (hash-table-ref counts "word1") (hash-table-ref squares 199999)))
(newline)
