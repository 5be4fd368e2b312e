#!/usr/bin/env python3
"""Classes as people write them, through the official OpenAI SDK for Python: the schema that the SDK makes of a class is taken by
`fullstop serve`, and what the small model answers is an object of that class, streamed or not. FULLSTOP names the program, MODEL the
file, SDKS the folder into which `./setup --tests` installed the SDK; it runs this file again, as `client PORT`."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import unittest


def client(port):
    import datetime
    import enum
    import uuid
    from typing import Annotated, List, Literal, Optional, Union

    import openai
    from pydantic import BaseModel, Field

    class Colour(enum.Enum):
        red = "red"
        blue = "blue"

    class Cat(BaseModel):
        species: Literal["cat"]
        lives: int = Field(ge=0, lt=9)

    class Dog(BaseModel):
        species: Literal["dog"]
        good: bool

    class Pet(BaseModel):
        """A pet."""
        name: str = Field(max_length=10, description="how it is called")
        colour: Colour
        kind: Union[Cat, Dog]
        weight: float = Field(ge=0, le=50)
        born: datetime.date
        id: uuid.UUID
        tag: Annotated[str, Field(pattern=r"^[A-Z]{2}-\d{3}$")]
        note: Optional[str] = Field(max_length=8)
        friends: List[Literal["a", "b"]] = Field(max_length=2)

    sdk = openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none", max_retries=0)
    asked = {"model": sdk.models.list().data[0].id, "messages": [{"role": "user", "content": "Describe a pet."}], "response_format": Pet, "max_tokens": 250}
    answers = [sdk.chat.completions.parse(**asked, seed=seed).choices[0] for seed in range(2)]
    with sdk.chat.completions.stream(**asked, seed=0) as stream:
        answers.append(stream.get_final_completion().choices[0])
    print(json.dumps([[choice.finish_reason, isinstance(choice.message.parsed, Pet), choice.message.parsed.model_dump_json()] for choice in answers]))


class ResponseFormat(unittest.TestCase):
    def test_a_class_comes_back_as_an_object_of_that_class(self):
        server = subprocess.Popen([os.environ["FULLSTOP"], "serve", "--model", os.environ["MODEL"], "--listen", "127.0.0.1:0", "--quiet", "--max-sequences", "2",
                                   "--kv-tokens", "2048"], stdout=subprocess.PIPE, text=True)
        try:
            port = server.stdout.readline().rsplit(":", 1)[1].strip()
            python = pathlib.Path(os.environ["SDKS"]) / "bin/python"
            run = subprocess.run([python, __file__, "client", port], capture_output=True, text=True, timeout=100)
        finally:
            server.send_signal(signal.SIGTERM)
            server.communicate(timeout=60)
        self.assertEqual(run.returncode, 0, run.stderr[-3000:])
        answers = json.loads(run.stdout)
        for reason, is_pet, text in answers:
            self.assertEqual((reason, is_pet), ("stop", True), text)
        self.assertEqual(answers[0][2], answers[2][2], "the same seed, streamed")
        self.assertEqual(server.returncode, 0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["client"]:
        client(sys.argv[2])
    else:
        unittest.main()
