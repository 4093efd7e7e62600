// Riders who watch a list: watchers URL CA.pem <RIDERS, where each line of RIDERS is a path, an access token, the
// header of a proof, a private key's seed, and the token's digest, as base64url.
//
// Each rider has a connection of its own, and waits for the list's next change (If-None-Match, Prefer: wait=25). A line
// on standard output says when an answer was there, nanoseconds of Unix time, and its status; "waiting" when all have
// read the list once.
package main

import (
	"bufio"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

var encoding = base64.RawURLEncoding

func main() {
	url, pem := os.Args[1], must(os.ReadFile(os.Args[2]))
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	var lines sync.Mutex
	say := func(text string) {
		lines.Lock()
		defer lines.Unlock()
		fmt.Println(text)
	}
	var ready sync.WaitGroup
	// All handshakes at once would only wait for one another.
	starts := make(chan struct{}, 16)
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		ready.Add(1)
		go watch(url, strings.Fields(input.Text()), roots, starts, &ready, say)
	}
	ready.Wait()
	say("waiting")
	select {}
}

func watch(url string, rider []string, roots *x509.CertPool, starts chan struct{}, ready *sync.WaitGroup, say func(string)) {
	path, access, header, digest := rider[0], rider[1], rider[2], rider[4]
	key := ed25519.NewKeyFromSeed(must(encoding.DecodeString(rider[3])))
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableCompression: true}}
	tag := ""
	for {
		request := must(http.NewRequest("GET", url+path, nil))
		id := make([]byte, 12)
		rand.Read(id)
		claims := fmt.Sprintf(`{"jti":"%s","htm":"GET","htu":"%s","iat":%d,"ath":"%s"}`, encoding.EncodeToString(id),
			url+strings.Split(path, "?")[0], time.Now().Unix(), digest)
		signed := header + "." + encoding.EncodeToString([]byte(claims))
		request.Header.Set("Authorization", "DPoP "+access)
		request.Header.Set("DPoP", signed+"."+encoding.EncodeToString(ed25519.Sign(key, []byte(signed))))
		request.Header.Set("Prefer", "wait=25")
		if tag == "" {
			starts <- struct{}{}
		} else {
			request.Header.Set("If-None-Match", tag)
		}
		answer := must(client.Do(request))
		io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
		now := time.Now().UnixNano()
		if answer.StatusCode != 200 && answer.StatusCode != 304 {
			log.Fatal(answer.Status)
		}
		if tag == "" {
			<-starts
			ready.Done()
		} else {
			say(fmt.Sprint(now, " ", answer.StatusCode))
		}
		tag = answer.Header.Get("ETag")
	}
}

func must[Value any](value Value, err error) Value {
	if err != nil {
		log.Fatal(err)
	}
	return value
}
