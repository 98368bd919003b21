// A seller's minimal declaration of a page that is bought by GET, under `extensions.catalog`.
export const declaration = {
  info: { input: { type: "http", method: "GET" }, output: { type: "json", example: {} } },
  schema: {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    properties: { input: { type: "object" }, output: { type: "object" } },
    required: ["input"]
  }
}
