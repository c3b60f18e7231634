// C interface of a Stan model that stays in memory: value and gradient in one call.
//
// Compiled behind the code that stanc writes for a program, which defines `new_model`.
// The module that httpstan itself compiles builds the model anew from Python's data at
// every call, and takes two calls for a value and its gradient.

#include <stan/io/json/json_data.hpp>
#include <stan/model/log_prob_grad.hpp>
#include <stan/model/model_base.hpp>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace {

using stan::model::model_base;

// Stan has one autodiff tape per thread; threads of the user's pool need theirs.
void have_tape() { static thread_local stan::math::ChainableStack tape; }

char* copied(const std::string& text) {
  char* copy = new char[text.size() + 1];
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

// An exception must not cross into C: `error` receives its message.
template <typename Action>
int guarded(char** error, Action action) {
  try {
    action();
    return 0;
  } catch (const std::exception& exception) {
    *error = copied(exception.what());
  } catch (...) {
    *error = copied("an unknown error of the Stan program");
  }
  return 1;
}

stan::json::json_data parsed(const char* json) {
  std::istringstream stream(json);
  return stan::json::json_data(stream);
}

}  // namespace

extern "C" {

void vhmc_stan_free_text(char* text) { delete[] text; }

void* vhmc_stan_new(const char* data, char** error) {
  void* model = nullptr;
  guarded(error, [&] {
    auto context = parsed(data);
    std::ostringstream messages;
    model = &new_model(context, 0, &messages);
  });
  return model;
}

void vhmc_stan_delete(void* model) { delete static_cast<model_base*>(model); }

size_t vhmc_stan_dim(void* model) {
  return static_cast<model_base*>(model)->num_params_r();
}

// Names of the entries of the unconstrained vector, one per line.
char* vhmc_stan_unconstrained_names(void* model) {
  std::vector<std::string> names;
  static_cast<model_base*>(model)->unconstrained_param_names(names, false, false);
  std::ostringstream lines;
  for (const auto& name : names) lines << name << '\n';
  return copied(lines.str());
}

// Columns of `vhmc_stan_write`, in order: a name and its dimensions per line.
char* vhmc_stan_layout(void* model, int with_transformed, int with_generated) {
  std::vector<std::string> names;
  std::vector<std::vector<size_t>> dims;
  auto* stan_model = static_cast<model_base*>(model);
  stan_model->get_param_names(names, with_transformed, with_generated);
  stan_model->get_dims(dims, with_transformed, with_generated);
  std::ostringstream lines;
  for (size_t i = 0; i < names.size(); i++) {
    lines << names[i];
    for (size_t extent : dims[i]) lines << ' ' << extent;
    lines << '\n';
  }
  return copied(lines.str());
}

// `grad` holds the point on entry and the gradient on return.
int vhmc_stan_value_and_grad(void* model, double* value, double* grad, char** error) {
  return guarded(error, [&] {
    have_tape();
    auto* stan_model = static_cast<model_base*>(model);
    std::vector<double> theta(grad, grad + stan_model->num_params_r());
    std::vector<double> answer;
    std::vector<int> no_integers;
    std::ostringstream messages;
    *value = stan::model::log_prob_grad<false, true>(*stan_model, theta, no_integers,
                                                    answer, &messages);
    std::copy(answer.begin(), answer.end(), grad);
  });
}

// Constrained values, `width` per point; NaN where the program raises an error.
void vhmc_stan_write(void* model, const double* thetas, size_t number,
                    int with_transformed, int with_generated, unsigned int seed,
                    double* out, size_t width) {
  have_tape();
  auto* stan_model = static_cast<model_base*>(model);
  size_t dim = stan_model->num_params_r();
  stan::rng_t rng(seed);
  for (size_t i = 0; i < number; i++) {
    std::vector<double> theta(thetas + i * dim, thetas + (i + 1) * dim), values;
    std::vector<int> no_integers;
    std::ostringstream messages;
    char* error = nullptr;
    guarded(&error, [&] {
      stan_model->write_array(rng, theta, no_integers, values, with_transformed,
                              with_generated, &messages);
    });
    delete[] error;
    values.resize(width, std::numeric_limits<double>::quiet_NaN());
    std::copy(values.begin(), values.end(), out + i * width);
  }
}

int vhmc_stan_unconstrain(void* model, const char* inits, double* theta, char** error) {
  return guarded(error, [&] {
    auto context = parsed(inits);
    std::vector<double> values;
    std::vector<int> no_integers;
    std::ostringstream messages;
    static_cast<model_base*>(model)->transform_inits(context, no_integers, values,
                                                     &messages);
    std::copy(values.begin(), values.end(), theta);
  });
}

}  // extern "C"
