;; Lists of 100,000 numbers, sorted by merging.
(define state 42)
(define (random n)
  (set! state (modulo (+ (* state 16807) 11) 2147483647))
  (modulo state n))
(define (numbers n) (let loop ((n n) (l '())) (if (= n 0) l (loop (- n 1) (cons (random 1000000) l)))))
(define (sorted? l) (or (null? (cdr l)) (and (<= (car l) (cadr l)) (sorted? (cdr l)))))
(do ((i 0 (+ i 1))) ((= i 5)) (display (sorted? (sort (numbers 100000) <))))
(newline)
