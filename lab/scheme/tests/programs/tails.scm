;; Calls in tail position take no room: loops, mutual recursion, through cond, and, or, when, apply.
(define (even2? n) (if (= n 0) #t (odd2? (- n 1))))
(define (odd2? n) (if (= n 0) #f (even2? (- n 1))))
(display (even2? 1000000)) (newline)
(define (down n) (cond ((= n 0) 'done) (else (and #t (or #f (apply down (list (- n 1))))))))
(display (down 100000)) (newline)
(display (let loop ((i 0) (sum 0)) (if (= i 1000000) sum (loop (+ i 1) (+ sum i))))) (newline)
(display (do ((i 0 (+ i 1))) ((= i 1000000) i))) (newline)
;; Recursion that is not: deep, without the Rust stack.
(define (count n) (if (= n 0) 0 (+ 1 (count (- n 1)))))
(display (count 1000000)) (newline)
(display (length (let up ((i 0)) (if (= i 300000) '() (cons i (up (+ i 1))))))) (newline)
