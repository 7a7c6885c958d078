#!/usr/bin/env python3
"""Answers the prompts of `fathom generate` with llama.cpp, for `fathom score`.

    pip install llama-cpp-python        # compiles; or: pip install xllamacpp, with --binding xllamacpp
    third_party/predict_llama_cpp.py MODEL.gguf prompts.jsonl predictions.jsonl

Greedy, with the exact prompt text (special tokens parsed, BOS only where the line says so) and the exact budget. A
prompt whose key is answered in predictions.jsonl already is skipped, so the command can be stopped and given again.
Uses nothing of Fathom but the file: any other engine can be driven in the same way.
"""
import argparse
import json
import os
import sys
import time


def answered_keys(path):
    if not os.path.exists(path):
        return set()
    with open(path, encoding="utf-8") as lines:
        return {json.loads(line)["key"] for line in lines if line.strip()}


def cut_at_stop(text, stops):
    """Text up to the first stop, and whether there was one."""
    ends = [text.index(stop) for stop in stops if stop and stop in text]
    return (text[: min(ends)], True) if ends else (text, False)


class LlamaCppPython:
    """Binding llama-cpp-python: token by token."""

    def __init__(self, path, n_ctx, n_threads):
        from llama_cpp import Llama

        self.model = Llama(path, n_ctx=n_ctx, n_threads=n_threads, n_batch=512, verbose=False)

    def answer(self, line):
        own, model = line["fathom"], self.model
        # Ids as the file states them, where it does (generate --ids); else llama.cpp's own tokenizer.
        text = (line["input"] + line["answer_prefix"]).encode("utf-8")
        ids = line.get("input_ids") or model.tokenize(text, add_bos=own["add_bos"], special=True)
        if len(ids) != own["prompt_tokens"]:
            print(f"note: {line['key']}: {len(ids)} tokens here, {own['prompt_tokens']} in Fathom", file=sys.stderr)
        model.reset()
        reply = []
        for token in model.generate(ids, top_k=1, temp=0.0, repeat_penalty=1.0):
            if token == model.token_eos() or len(reply) >= line["max_new_tokens"]:
                break
            reply.append(token)
            text, stopped = cut_at_stop(model.detokenize(reply).decode("utf-8", errors="ignore"), own["stop"])
            if stopped:
                return text
        return model.detokenize(reply).decode("utf-8", errors="replace")


class XLlamaCpp:
    """Binding xllamacpp, whose wheels come built: llama.cpp's server in this process."""

    def __init__(self, path, n_ctx, n_threads):
        import xllamacpp

        params = xllamacpp.CommonParams()
        params.model.path = path
        params.n_ctx = n_ctx
        params.n_parallel = 1
        params.cpuparams.n_threads = n_threads
        params.warmup = False
        self.server = xllamacpp.Server(params)

    def answer(self, line):
        own = line["fathom"]
        reply = self.server.handle_completions(
            {
                "prompt": line.get("input_ids") or line["input"] + line["answer_prefix"],
                "max_tokens": line["max_new_tokens"],
                "temperature": 0.0,
                "top_k": 1,
                "repeat_penalty": 1.0,
                "cache_prompt": False,
                "stop": own["stop"],
            }
        )
        used = reply.get("usage", {}).get("prompt_tokens")
        if used not in (None, own["prompt_tokens"]):
            print(f"note: {line['key']}: {used} tokens here, {own['prompt_tokens']} in Fathom", file=sys.stderr)
        return cut_at_stop(reply["choices"][0]["text"], own["stop"])[0]


BINDINGS = {"llama-cpp-python": LlamaCppPython, "xllamacpp": XLlamaCpp}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("prompts")
    parser.add_argument("predictions")
    parser.add_argument("--binding", choices=sorted(BINDINGS), default="llama-cpp-python")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    arguments = parser.parse_args()

    with open(arguments.prompts, encoding="utf-8") as lines:
        prompts = [json.loads(line) for line in lines if line.strip()]
    done = answered_keys(arguments.predictions)
    longest = max(line["length"] for line in prompts)
    engine = BINDINGS[arguments.binding](arguments.model, longest + 8, arguments.threads)
    started = time.time()
    with open(arguments.predictions, "a", encoding="utf-8") as out:
        for number, line in enumerate(prompts, 1):
            if line["key"] in done:
                continue
            try:
                prediction = {"key": line["key"], "pred": engine.answer(line)}
            except RuntimeError as error:
                prediction = {"key": line["key"], "pred": None, "error": str(error)}
            out.write(json.dumps(prediction, ensure_ascii=False) + "\n")
            out.flush()
            print(f"{number}/{len(prompts)}  {time.time() - started:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
