;; Texts made of texts.
(define (line n) (string-append "line " (number->string n) ": " (make-string (modulo n 40) #\x)))
(define (page from to)
  (call-with-output-string
   (lambda (port)
     (do ((i from (+ i 1))) ((= i to)) (write-string (line i) port) (newline port)))))
(define (build pages) (let loop ((i 0) (sum 0)) (if (= i pages) sum (loop (+ i 1) (+ sum (string-length (page (* i 100) (* (+ i 1) 100))))))))
(display (build 4000))
(newline)
