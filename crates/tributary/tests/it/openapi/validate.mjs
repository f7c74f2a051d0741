// Validates a description against the schema of its OpenAPI version: node validate.mjs FILE
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(`${process.env.NODE_PACKAGES_DIR}/package.json`);
const { Validator } = await import(pathToFileURL(require.resolve("@seriousme/openapi-schema-validator")));
const validator = new Validator();
const { valid, errors } = await validator.validate(process.argv[2]);
console.log(valid ? `valid ${validator.version}` : JSON.stringify(errors, null, 1));
process.exitCode = valid ? 0 : 1;
