package fakecloudwatch

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Datum is one accepted value.
type Datum struct {
	Namespace, Name, Unit string
	Dimensions            map[string]string
	Value                 float64
	Time                  time.Time
	Timestamped           bool // by the client; otherwise Time is when the request arrived
	Request               int  // counted from 1 over all requests
}

// Fault is what happens to a request instead of the normal service.
type Fault struct {
	Status int    // of an error; 0 if none
	Code   string // of that error, such as "Throttling"
	Hang   bool   // no answer until the client gives up or the server is closed
}

// Throttled, Broken and Denied are faults that a client is expected to survive.
var (
	Throttled = Fault{Status: http.StatusBadRequest, Code: "Throttling"}
	Broken    = Fault{Status: http.StatusInternalServerError, Code: "InternalServiceFault"}
	Denied    = Fault{Status: http.StatusForbidden, Code: "AccessDenied"}
)

// Server is a CloudWatch of one region.
type Server struct {
	URL string // for AWS_ENDPOINT_URL_CLOUDWATCH

	region string
	server *http.Server
	served sync.WaitGroup
	closed chan struct{}
	once   sync.Once

	mu         sync.Mutex // guards the fields below
	data       []Datum
	requests   int
	violations []string
	fault      func(request int) Fault
	changed    chan struct{} // closed and replaced after each request
}

// NewServer serves a region on a free loopback port. Close it when done.
func NewServer(region string) (*Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	s := &Server{URL: "http://" + l.Addr().String(), region: region, closed: make(chan struct{}), changed: make(chan struct{})}
	s.server = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	s.served.Go(func() { _ = s.server.Serve(l) }) // returns ErrServerClosed after Close
	return s, nil
}

// Close stops the server immediately.
func (s *Server) Close() error {
	s.once.Do(func() { close(s.closed) })
	err := s.server.Close()
	s.served.Wait()
	return err
}

// Env lists the environment variables that point a program at the server.
func (s *Server) Env() []string { return []string{"AWS_ENDPOINT_URL_CLOUDWATCH=" + s.URL} }

// SetFault sets the function that selects the fault of each request, counted from 1. If it is
// nil, all requests are served.
func (s *Server) SetFault(f func(request int) Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// Data returns the data accepted so far, in order.
func (s *Server) Data() []Datum {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.data)
}

// Requests returns the number of requests so far, including failed ones.
func (s *Server) Requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

// Violations returns the requests that CloudWatch would refuse.
func (s *Server) Violations() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.violations)
}

// Changed returns a channel that is closed after the next request is served.
func (s *Server) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	number, fault := s.begin()
	if fault.Hang {
		select {
		case <-r.Context().Done():
		case <-s.closed:
		}
		s.end(nil, nil)
		panic(http.ErrAbortHandler) // returning would answer 200
	}
	data, e := s.take(r, number)
	switch {
	case e != nil:
		s.end(nil, e)
	case fault.Status != 0:
		e = &apiError{fault.Status, fault.Code, "a fault of the test"}
		s.end(nil, nil)
	default:
		s.end(data, nil)
	}
	writeReply(w, e)
}

func (s *Server) begin() (number int, fault Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	if s.fault != nil {
		fault = s.fault(s.requests)
	}
	return s.requests, fault
}

func (s *Server) take(r *http.Request, number int) ([]Datum, *apiError) {
	in, e := readRequest(r, s.region)
	if e != nil {
		return nil, e
	}
	data, e := check(in, time.Now())
	for i := range data {
		data[i].Request = number
	}
	return data, e
}

func (s *Server) end(data []Datum, violation *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.data = append(s.data, data...)
	if violation != nil {
		s.violations = append(s.violations, violation.Error())
	}
	close(s.changed)
	s.changed = make(chan struct{})
}
