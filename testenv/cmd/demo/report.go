package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// report prints one line per step and counts failures. Its methods are safe for
// concurrent use.
type report struct {
	out   io.Writer
	begin time.Time

	mu     sync.Mutex // guards what follows and out
	steps  int
	failed int
}

// step prints the outcome of one step.
func (r *report) step(what string, err error, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.steps++
	verdict, detail := "ok", fmt.Sprintf(format, args...)
	if err != nil {
		r.failed++
		verdict, detail = "FAIL", detail+": "+err.Error()
	}
	fmt.Fprintf(r.out, "%6.2fs  %-4s  %-10s  %s\n", time.Since(r.begin).Seconds(), verdict, what, detail)
}

// counts returns the number of steps and of failed steps.
func (r *report) counts() (steps, failed int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.steps, r.failed
}
