#!/usr/bin/env python3
"""Makes the 20 recordings of fixtures/files/speech/heard, once. Known words, said by people and by programs, in the codings that calls come in.

  make_speech.py FOLDER    FOLDER is the unpacked source package pocketsphinx 5.0.4, which carries recordings of people:
                           LibriVox (public domain) and Carnegie Mellon's own (BSD). It needs ffmpeg, flite and espeak-ng.
"""

import pathlib
import subprocess
import sys
import tempfile

OUT = pathlib.Path(__file__).resolve().parent.parent / "fixtures/files/speech/heard"
BOOK = "librivox/sense_and_sensibility_01_austen_64kb-"
OPUS = "-ar 16000 -c:a libopus -b:a 24k -application voip"
PHONE = "-ar 8000 -ac 1 -c:a pcm_mulaw"
MP3 = "-ar 16000 -c:a libmp3lame -b:a 32k -write_xing 0"
AAC = "-ar 44100 -ac 2 -c:a aac -b:a 48k"
HISS = "-f lavfi -i anoisesrc=color=pink:amplitude=0.02:seed=7 -filter_complex [0][1]amix=duration=first:normalize=0"

# Name, how it is said (`real` a file, else a program and its voice), the coding, the words.
RECORDINGS = [
    ("book1.ogg", f"real {BOOK}0870.wav", OPUS, "and mister john dashwood had then leisure to consider how much there might be prudently in his power to do for them"),
    ("book2.ogg", f"real {BOOK}0880.wav", OPUS, "he was not an ill disposed young man"),
    ("book3.ogg", f"real {BOOK}0890.wav", OPUS, "unless to be rather cold hearted and rather selfish is to be ill disposed"),
    ("book4.ogg", f"real {BOOK}0920.wav", OPUS, "had he married a more amiable woman he might have been made still more respectable than he was"),
    ("book5.ogg", f"real {BOOK}0930.wav", OPUS, "he might even have been made amiable himself"),
    ("robot.ogg", "real goforward.raw", OPUS, "go forward ten meters"),
    ("cards1.ogg", "real cards/001.wav", OPUS, ""),
    ("cards2.ogg", "real cards/002.wav", OPUS, ""),
    ("cards4.ogg", "real cards/004.wav", OPUS, ""),
    ("roof.wav", "flite rms", PHONE, "Good morning. The roof of the old warehouse is leaking again, and somebody has to look at it before the weekend."),
    ("offer.wav", "flite slt", PHONE, "We have read your offer. Please send us the contract, and we will sign it on Tuesday."),
    ("invoice.mp3", "flite slt", MP3, "The invoice of the printing company is still not paid, although they have written to us twice."),
    ("garden.mp3", "flite rms", MP3, "My neighbour told me that you also plant trees. I have a large garden behind the house, and nothing grows in it."),
    ("parcel.m4a", "flite slt", AAC, "The parcel arrived yesterday evening, but one of the two boxes was empty."),
    ("keys.m4a", "flite awb", AAC, "I have left the keys of the office with the doorman. Please take them back before noon."),
    ("meeting.ogg", "flite rms", OPUS, "The meeting has been moved to Thursday afternoon, because the customer is travelling until then."),
    ("hissing.ogg", "flite slt", f"{HISS} {OPUS}", "Can you hear me? The line is very bad today. I will call again when I am at home."),
    ("thanks.ogg", "espeak-ng en+m7", OPUS, "Thank you for calling customer support. One of our engineers will call you back this afternoon."),
    ("termin.ogg", "espeak-ng de", OPUS, "Guten Tag. Ich möchte den Termin am Montag absagen. Bitte rufen Sie mich zurück."),
    ("lease.flac", "flite awb", "-ar 16000 -c:a flac", "The lease of the office ends in June, and the landlord wants to know whether we will stay."),
]


def words_of_cards(data: pathlib.Path, name: str) -> str:
    for line in (data / "cards/cards.transcription").read_text().splitlines():
        if line.endswith(f"({name})"):
            return line.removeprefix("<s>").split("</s>")[0].split("(")[0].strip()
    raise SystemExit(f"no words of {name}")


def main(folder: str) -> None:
    data = pathlib.Path(folder) / "test/data"
    OUT.mkdir(parents=True, exist_ok=True)
    lines = []
    with tempfile.TemporaryDirectory() as tmp:
        said = str(pathlib.Path(tmp) / "said.wav")
        for name, how, coding, words in RECORDINGS:
            program, voice = how.split(" ", 1)
            raw = ["-f", "s16le", "-ar", "16000", "-ac", "1"] if voice.endswith(".raw") else []
            source = [*raw, "-i", str(data / voice) if program == "real" else said]
            if program == "flite":
                subprocess.run(["flite", "-voice", voice, "-t", words, said], check=True)
            elif program == "espeak-ng":
                subprocess.run(["espeak-ng", "-v", voice, "-s", "145", "-w", said, words], check=True)
            elif "cards" in voice:
                words = words_of_cards(data, pathlib.Path(voice).stem)
            plain = ["-map_metadata", "-1", "-fflags", "+bitexact", "-flags:a", "+bitexact"]
            command = ["ffmpeg", "-v", "error", "-y", *source, *coding.split(), *plain, str(OUT / name)]
            subprocess.run(command, check=True)
            lines.append(f"{name}\t{'person' if program == 'real' else program}\t{words}\n")
    (OUT / "words.tsv").write_text("".join(lines))


if __name__ == "__main__":
    main(sys.argv[1])
