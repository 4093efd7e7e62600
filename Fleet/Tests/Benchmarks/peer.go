// The server's two busiest requests as one would write them in Go: net/http, SQLite (mattn/go-sqlite3), crypto/ed25519.
//
//	peer PORT DATABASE CERTIFICATE KEY ORIGIN LIMIT
//
// POST /v1/bookings and GET /v1/vehicles/ID do what stepfleet does for them, on a database that stepfleet has made: the
// proof (RFC 9449) is checked and remembered, the session read, and a booking made by the same statements, durably.
package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mattn/go-sqlite3"
)

const (
	maximumAge    = 120
	maximumLead   = 60
	maximumLength = 31 * 86400
	sessionByID   = `SELECT session.account, session.device, session.access, session.access_expires,
  session.former_access, session.former_access_expires, account.role, account.state
FROM session JOIN account ON account.id = session.account WHERE session.id = ?`
	nextBooking = `SELECT begins, ends, state, has_access FROM booking
WHERE vehicle = ? AND ends > ? AND state IN ('booked', 'active') ORDER BY ends LIMIT 1`
	vehicleByID  = `SELECT id, name, folder, steps, service FROM vehicle WHERE id = ? AND service <> 'removed'`
	openBookings = `SELECT count(*) FROM booking
WHERE account = ? AND begins > ? AND ends > ? AND state IN ('booked', 'active')`
	newBooking = `INSERT INTO booking
(id, vehicle, account, subject, begins, ends, steps, state, has_access, version, created)
VALUES (?, ?, ?, ?, ?, ?, ?, 'booked', 0, 1, ?)`
	newEvent    = `INSERT INTO vehicle_event (id, vehicle, booking, event, time) VALUES (?, ?, ?, ?, ?)`
	bookingByID = `SELECT booking.id, account, subject, begins, ends, booking.steps, state, has_access, version,
  vehicle.id, vehicle.name, vehicle.folder, vehicle.steps, vehicle.service
FROM booking JOIN vehicle ON vehicle.id = booking.vehicle WHERE booking.id = ?`
)

type step struct {
	ID    string `json:"id"`
	Side  string `json:"side"`
	Major int    `json:"major"`
}

type vehicle struct {
	name, service string
	steps         []step
}

type server struct {
	origin                   string
	limit                    int
	reader, writer           *sql.DB
	session, next            *sql.Stmt
	known, open, book, event *sql.Stmt
	made                     *sql.Stmt
	vehicles                 map[string]vehicle
	mutex                    sync.Mutex
	used                     map[[32]byte]int64
}

type problem struct {
	status int
	code   string
}

func (p problem) Error() string { return p.code }

func uuid() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

func part(text string, into interface{}) error {
	bytes, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return err
	}
	return json.Unmarshal(bytes, into)
}

// Who asks, as far as the request proves it.
func (s *server) caller(r *http.Request) (string, error) {
	refused := problem{401, "unauthorized"}
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "DPoP ")
	proofs := r.Header.Values("DPoP")
	if len(token) != 69 || !strings.HasPrefix(token, "sfa_") || len(proofs) != 1 || len(proofs[0]) > 4096 {
		return "", refused
	}
	parts := strings.Split(proofs[0], ".")
	var header struct {
		Typ, Alg string
		Jwk      struct{ Kty, Crv, X string }
	}
	var claims struct {
		Jti, Htm, Htu, Ath string
		Iat                int64
	}
	if len(parts) != 3 || part(parts[0], &header) != nil || part(parts[1], &claims) != nil {
		return "", refused
	}
	key, err := base64.RawURLEncoding.DecodeString(header.Jwk.X)
	if err != nil || len(key) != ed25519.PublicKeySize {
		return "", refused
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil || header.Typ != "dpop+jwt" || header.Alg != "EdDSA" ||
		!ed25519.Verify(key, []byte(parts[0]+"."+parts[1]), signature) {
		return "", refused
	}
	now := time.Now().Unix()
	if claims.Htm != r.Method || claims.Htu != s.origin+r.URL.Path || claims.Ath != digest(token) ||
		claims.Iat < now-maximumAge || claims.Iat > now+maximumLead || claims.Jti == "" {
		return "", refused
	}
	var account, device, access, role, state string
	var expires, formerExpires int64
	var former sql.NullString
	if s.session.QueryRow(token[4:26]).Scan(
		&account, &device, &access, &expires, &former, &formerExpires, &role, &state) != nil {
		return "", refused
	}
	thumbprint := digest(`{"crv":"` + header.Jwk.Crv + `","kty":"` + header.Jwk.Kty + `","x":"` + header.Jwk.X + `"}`)
	if subtle.ConstantTimeCompare([]byte(access), []byte(claims.Ath)) != 1 || now >= expires || state != "active" ||
		thumbprint != device {
		return "", refused
	}
	name := sha256.Sum256([]byte(device + " " + claims.Jti))
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if _, again := s.used[name]; again {
		return "", refused
	}
	s.used[name] = now
	return account, nil
}

func (s *server) readVehicle(w http.ResponseWriter, r *http.Request) error {
	if _, err := s.caller(r); err != nil {
		return err
	}
	id := strings.TrimPrefix(r.URL.Path, "/v1/vehicles/")
	vehicle, ok := s.vehicles[id]
	if !ok {
		return problem{404, "not_found"}
	}
	now, state := time.Now().Unix(), "available"
	var begins, ends, access int64
	var written string
	switch err := s.next.QueryRow(id, now).Scan(&begins, &ends, &written, &access); {
	case err == nil && begins > now:
	case err == nil && access != 0:
		state = "on_trip"
	case err == nil:
		state = "reserved"
	case !errors.Is(err, sql.ErrNoRows):
		return err
	}
	body, err := json.Marshal(struct {
		ID    string `json:"id"`
		Name  string `json:"name"`
		State string `json:"state"`
		Steps []step `json:"steps"`
	}{id, vehicle.name, state, vehicle.steps})
	if err != nil {
		return err
	}
	sum := sha256.Sum256(body)
	w.Header().Set("ETag", `"`+hex.EncodeToString(sum[:8])+`"`)
	w.Header().Set("Content-Type", "application/json")
	_, err = w.Write(body)
	return err
}

func (s *server) makeBooking(w http.ResponseWriter, r *http.Request) error {
	account, err := s.caller(r)
	if err != nil {
		return err
	}
	var wanted struct{ Vehicle, From, To string }
	decoder := json.NewDecoder(io.LimitReader(r.Body, 65536))
	decoder.DisallowUnknownFields()
	if decoder.Decode(&wanted) != nil {
		return problem{400, "malformed"}
	}
	from, err := time.Parse(time.RFC3339, wanted.From)
	if err != nil {
		return problem{400, "malformed"}
	}
	to, err := time.Parse(time.RFC3339, wanted.To)
	if err != nil {
		return problem{400, "malformed"}
	}
	now := time.Now().Unix()
	if from.Unix() < now-300 || to.Unix()-from.Unix() < 60 || to.Unix()-from.Unix() > maximumLength {
		return problem{422, "past"}
	}
	body, err := s.booked(account, wanted.Vehicle, from.Unix(), to.Unix(), now)
	var failure sqlite3.Error
	if errors.As(err, &failure) && failure.Code == sqlite3.ErrConstraint {
		return problem{409, "taken"}
	}
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(201)
	_, err = w.Write(body)
	return err
}

// One immediate transaction, which is on the medium when this returns.
func (s *server) booked(account, id string, from, to, now int64) ([]byte, error) {
	transaction, err := s.writer.Begin()
	if err != nil {
		return nil, err
	}
	defer transaction.Rollback()
	var ignored, name, steps, service string
	if err = transaction.Stmt(s.known).QueryRow(id).Scan(&ignored, &name, &ignored, &steps, &service); err != nil {
		return nil, problem{404, "not_found"}
	}
	var known []step
	if err = json.Unmarshal([]byte(steps), &known); err != nil {
		return nil, err
	}
	var count int
	if err = transaction.Stmt(s.open).QueryRow(account, now-maximumLength, now).Scan(&count); err != nil {
		return nil, err
	}
	if count >= s.limit {
		return nil, problem{409, "too_many_bookings"}
	}
	wanted := make([]string, len(known))
	for index, step := range known {
		wanted[index] = step.ID
	}
	booking, subject := uuid(), "b-"+uuid()[:8]
	if _, err = transaction.Stmt(s.book).Exec(
		booking, id, account, subject, from, to, strings.Join(wanted, " "), now); err != nil {
		return nil, err
	}
	if _, err = transaction.Stmt(s.event).Exec(uuid(), id, booking, "reservation_start", now); err != nil {
		return nil, err
	}
	var begins, ends, access, version int64
	var state, stepIDs string
	if err = transaction.Stmt(s.made).QueryRow(booking).Scan(
		&booking, &account, &subject, &begins, &ends, &stepIDs, &state, &access, &version,
		&id, &name, &ignored, &steps, &service); err != nil {
		return nil, err
	}
	body, err := json.Marshal(map[string]interface{}{
		"id": booking, "vehicle": id, "name": name, "state": state, "steps": strings.Fields(stepIDs),
		"from": time.Unix(begins, 0).UTC().Format(time.RFC3339), "to": time.Unix(ends, 0).UTC().Format(time.RFC3339),
		"etag": `"` + strconv.FormatInt(version, 10) + `"`,
	})
	if err != nil {
		return nil, err
	}
	return body, transaction.Commit()
}

func answering(handle func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := handle(w, r); err != nil {
			refusal := problem{500, "failed"}
			if !errors.As(err, &refusal) {
				log.Print(err)
			}
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(refusal.status)
			fmt.Fprintf(w, `{"status":%d,"code":"%s"}`, refusal.status, refusal.code)
		}
	}
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	port, path, certificate, key := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	limit, err := strconv.Atoi(os.Args[6])
	must(err)
	s := &server{origin: os.Args[5], limit: limit, vehicles: map[string]vehicle{}, used: map[[32]byte]int64{}}
	address := "file:" + path + "?_journal_mode=WAL&_synchronous=FULL&_busy_timeout=5000&_foreign_keys=1"
	s.writer, err = sql.Open("sqlite3", address+"&_txlock=immediate")
	must(err)
	s.writer.SetMaxOpenConns(1)
	var durable int
	must(s.writer.QueryRow("PRAGMA synchronous").Scan(&durable))
	if durable != 2 {
		log.Fatal("commits would not be durable")
	}
	s.reader, err = sql.Open("sqlite3", address+"&mode=ro")
	must(err)
	s.reader.SetMaxOpenConns(4)
	s.reader.SetMaxIdleConns(4)
	prepare := func(database *sql.DB, text string) *sql.Stmt {
		statement, err := database.Prepare(text)
		must(err)
		return statement
	}
	s.session, s.next = prepare(s.reader, sessionByID), prepare(s.reader, nextBooking)
	s.known, s.open, s.book = prepare(s.writer, vehicleByID), prepare(s.writer, openBookings), prepare(s.writer, newBooking)
	s.event, s.made = prepare(s.writer, newEvent), prepare(s.writer, bookingByID)
	rows, err := s.reader.Query("SELECT id, name, steps, service FROM vehicle WHERE service <> 'removed'")
	must(err)
	for rows.Next() {
		var id, steps string
		var one vehicle
		must(rows.Scan(&id, &one.name, &steps, &one.service))
		must(json.Unmarshal([]byte(steps), &one.steps))
		s.vehicles[id] = one
	}
	routes := http.NewServeMux()
	routes.HandleFunc("/v1/bookings", answering(s.makeBooking))
	routes.HandleFunc("/v1/vehicles/", answering(s.readVehicle))
	routes.HandleFunc("/healthz", func(w http.ResponseWriter, r *http.Request) {
		var one int
		must(s.reader.QueryRow("SELECT 1").Scan(&one))
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"status":"ok"}`)
	})
	// HTTP/1.1, as the others.
	listener := &http.Server{
		Addr: ":" + port, Handler: routes, TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
		ErrorLog: log.New(io.Discard, "", 0),
	}
	must(listener.ListenAndServeTLS(certificate, key))
}
