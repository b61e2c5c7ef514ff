;; Short lists that die young: all ways to place queens.
(define (free? row distance placed)
  (or (null? placed)
      (and (not (= (car placed) row))
           (not (= (abs (- (car placed) row)) distance))
           (free? row (+ distance 1) (cdr placed)))))
(define (place n)
  (let try ((k n))
    (if (= k 0)
        '(())
        (append-map
         (lambda (placed)
           (let rows ((row 1) (found '()))
             (if (> row n)
                 found
                 (rows (+ row 1) (if (free? row 1 placed) (cons (cons row placed) found) found)))))
         (try (- k 1))))))
(display (length (place 10)))
(newline)
