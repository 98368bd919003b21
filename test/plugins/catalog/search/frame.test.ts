// Separates the words that frame a question from its topic.
import { expect, it } from "vitest"
import { readFrame } from "../../../../plugins/catalog/search/readFrame.ts"
import { frames } from "../../../relevance/frames.ts"

/** Frames without words of the field are the lexical branch's. */
const ofTheField = frames.filter((frame) => !/^(?:find|I need|paid endpoint|best)/.test(frame))

it.each(ofTheField)("the frame %j is set aside", (frame) => {
  const { query, words } = readFrame(frame.replace("…", "hay fever forecast"))
  expect(query).toMatch(/hay fever forecast/)
  expect(query).not.toMatch(/402|usdc|xlm|stellar|agent|key|signup|subscription|per.call|per.use|mcp|micro/i)
  expect(words.length).toBeGreaterThan(0)
})

it.each([
  ["image generation charged per request in USDC", "image generation"],
  ["tools my agent can pay for with usdc over x402: geocoding", "tools: geocoding"],
  ["OCR, payable per call via x402 in USDC on Stellar", "OCR"],
  ["Summarize a PDF (pay per call, USDC)", "Summarize a PDF"],
  ["weather without needing an account", "weather"],
  ["weather with no api key or signup needed", "weather"],
  ["i am an ai agent trying to convert a pdf", "convert a pdf"],
  ["speech to text x402-enabled API", "speech to text API"],
  ["stablecoin yields x402 usdc", "stablecoin yields"],
  ["天気 x402", "天気"]
])("of %j the question is %j", (query, rest) => {
  expect(readFrame(query).query).toBe(rest)
})

it.each([
  "x402",
  "pay per call",
  "mcp server",
  "usdc balance of a wallet",
  "usdc to eur",
  "price of xlm",
  "send usdc",
  "stellar account balance",
  "stellar network fees",
  "which wallets support stellar",
  "stellar news",
  "news about stellar",
  "translation for real estate agents",
  "keyless entry car",
  "markdown for llms"
])("nothing is set aside in %j", (query) => {
  expect(readFrame(query)).toEqual({ query, words: [], prefers: [] })
})

it("some words of a frame prefer listings of their kind", () => {
  expect(readFrame("mcp server for weather").prefers).toEqual(["tool"])
  expect(readFrame("weather paid in usdc").prefers).toEqual(["dollar"])
  expect(readFrame("weather pay per call").prefers).toEqual([])
})

it("the longest query is read within milliseconds", () => {
  for (const word of ["pay ", "with ", "usdc, ", "no account, ", "for ai ", "x402 ", "  ", "("]) {
    const query = word.repeat(512 / word.length)
    readFrame(query)
    const from = performance.now()
    readFrame(query)
    expect(performance.now() - from, word).toBeLessThan(100)
  }
})
