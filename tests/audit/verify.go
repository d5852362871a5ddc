// Command verify reads documents of an audit log, one a line, with Go's own packages for notes and logs, and prints what is wrong with each:
// an empty line for one that verifies. `test_other_programs.py` runs it.
package main

import (
	"bufio"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// Document is a signed checkpoint, and optionally a leaf with its inclusion proof, an older checkpoint with a consistency proof, and the key
// of a witness.
type Document struct {
	Vkey, Witness, Checkpoint, Older, Leaf string
	LeafIndex                              int64 `json:"leaf_index"`
	Inclusion, Consistency                 []string
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var document Document
		err := json.Unmarshal(lines.Bytes(), &document)
		if err == nil {
			err = document.verify()
		}
		if err != nil {
			fmt.Println(strings.ReplaceAll(err.Error(), "\n", " "))
		} else {
			fmt.Println()
		}
	}
}

func (d Document) verify() error {
	size, root, err := d.open(d.Checkpoint)
	if err != nil {
		return err
	}
	if d.Leaf != "" {
		proof, err := hashes(d.Inclusion)
		if err != nil {
			return err
		}
		if err := tlog.CheckRecord(proof, size, root, d.LeafIndex, tlog.RecordHash([]byte(d.Leaf))); err != nil {
			return err
		}
	}
	if d.Older != "" {
		older, olderRoot, err := d.open(d.Older)
		if err != nil {
			return err
		}
		proof, err := hashes(d.Consistency)
		if err != nil {
			return err
		}
		return tlog.CheckTree(tlog.TreeProof(proof), size, root, older, olderRoot)
	}
	return nil
}

func (d Document) open(text string) (int64, tlog.Hash, error) {
	verifier, err := note.NewVerifier(d.Vkey)
	if err != nil {
		return 0, tlog.Hash{}, err
	}
	opened, err := note.Open([]byte(text), note.VerifierList(verifier))
	if err != nil {
		return 0, tlog.Hash{}, err
	}
	if d.Witness != "" {
		key, err := newWitness(d.Witness)
		if err != nil {
			return 0, tlog.Hash{}, err
		}
		if _, err := note.Open([]byte(text), note.VerifierList(key)); err != nil {
			return 0, tlog.Hash{}, err
		}
	}
	lines := strings.Split(opened.Text, "\n")
	if len(lines) < 4 {
		return 0, tlog.Hash{}, errors.New("not a checkpoint")
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil {
		return 0, tlog.Hash{}, err
	}
	root, err := tlog.ParseHash(lines[2])
	return size, root, err
}

func hashes(encoded []string) ([]tlog.Hash, error) {
	found := make([]tlog.Hash, 0, len(encoded))
	for _, each := range encoded {
		hash, err := tlog.ParseHash(each)
		if err != nil {
			return nil, err
		}
		found = append(found, hash)
	}
	return found, nil
}

// witness verifies cosignatures as c2sp.org/tlog-cosignature says, as a note.Verifier.
type witness struct {
	name string
	key  ed25519.PublicKey
}

func newWitness(vkey string) (witness, error) {
	parts := strings.SplitN(vkey, "+", 3)
	if len(parts) != 3 {
		return witness{}, errors.New("malformed key of a witness")
	}
	key, err := base64.StdEncoding.DecodeString(parts[2])
	if err != nil || len(key) != 33 || key[0] != 4 {
		return witness{}, errors.New("malformed key of a witness")
	}
	return witness{parts[0], ed25519.PublicKey(key[1:])}, nil
}

func (w witness) Name() string { return w.name }

func (w witness) KeyHash() uint32 {
	sum := sha256.Sum256(append([]byte(w.name+"\n\x04"), w.key...))
	return binary.BigEndian.Uint32(sum[:])
}

func (w witness) Verify(text, signature []byte) bool {
	if len(signature) != 72 {
		return false
	}
	seconds := binary.BigEndian.Uint64(signature)
	message := fmt.Sprintf("cosignature/v1\ntime %d\n%s", seconds, text)
	return ed25519.Verify(w.key, []byte(message), signature[8:])
}
