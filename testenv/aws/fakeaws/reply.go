package fakeaws

import (
	"net/http"
	"regexp"
	"strconv"
)

// response is what a handler sends, intact or spoilt by a fault.
type response struct {
	status int
	header http.Header
	body   []byte
	fault  Reply
}

const (
	garbage = "\x00\xff<\x1f\x8b\xde\xad\xbe\xef<<&&\r\n\xc3("
	webPage = "<!DOCTYPE html>\n<html><head><title>Sign in</title></head><body><p>Please sign in to the network.<br></body></html>\n"
)

// send writes the answer. It returns when the client has it or has given up or, for
// answers that never end, when done is closed. It panics with http.ErrAbortHandler to
// close the connection, as net/http expects.
func (a response) send(rw http.ResponseWriter, r *http.Request, done <-chan struct{}) {
	switch a.fault {
	case ReplyClosed:
		panic(http.ErrAbortHandler)
	case ReplyHang:
		waitFor(r, done)
		panic(http.ErrAbortHandler)
	case ReplyGarbage:
		a.status, a.body = http.StatusOK, []byte(garbage)
	case ReplyHTML:
		a.status, a.body = http.StatusOK, []byte(webPage)
		a.header.Set("Content-Type", "text/html; charset=utf-8")
	}
	h := rw.Header()
	for k, v := range a.header {
		h[k] = v
	}
	if a.fault != ReplyStall && a.fault != ReplyTruncated {
		rw.WriteHeader(a.status)
		_, _ = rw.Write(a.body) // a client that hung up needs no answer
		return
	}
	h.Set("Content-Length", strconv.Itoa(len(a.body)))
	rw.WriteHeader(a.status)
	_, _ = rw.Write(a.body[:len(a.body)/2])
	_ = http.NewResponseController(rw).Flush() // a client that hung up needs no answer
	if a.fault == ReplyStall {
		waitFor(r, done)
	}
	panic(http.ErrAbortHandler)
}

func waitFor(r *http.Request, done <-chan struct{}) {
	select {
	case <-r.Context().Done():
	case <-done:
	}
}

var resourceID = regexp.MustCompile(`\b(eni-attach|eni|subnet|vpc|sg|i|r)-[0-9a-f]{8,}\b`)

// foreign replaces the ids in an answer with ids that no world assigns.
func foreign(body []byte) []byte {
	return resourceID.ReplaceAll(body, []byte("${1}-0ffffffffffffffff"))
}
